"""The engine: one fork server per toolchain, one child process per cell, every outcome kept."""
