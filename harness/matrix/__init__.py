"""The matrix itself, below everything that shows it: its axes, their order, kinds of cells, and addresses within a report."""
