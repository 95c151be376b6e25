"""Bisection: compile releases or commits between two ends, and report each border where the outcome changes."""
