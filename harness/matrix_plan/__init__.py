"""The plan of the published matrix: its axes, its coverage, and what to compile next."""
