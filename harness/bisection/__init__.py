"""Bisection: compile releases or commits between two ends, and report each border, at which the outcome changes."""
