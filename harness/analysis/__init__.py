"""From cells to what they mean together: statements, disagreements, changes, coverage, history."""
