"""The plan of the published matrix: the axes that it crosses, what of that is tried, and what to compile next."""
