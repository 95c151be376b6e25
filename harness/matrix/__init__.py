"""The matrix: its axes, their order, kinds of cells, and addresses within a report. It is independent of all output."""
