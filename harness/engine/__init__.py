"""Runs cells: one zygote a toolchain, one child a cell, every outcome kept."""
