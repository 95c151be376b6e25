"""Runs cells: one fork server a toolchain, one child a cell, every outcome kept."""
