"""Without debug=True the thread that raises ends in silence, and leaves its value as it was."""


def invert(values):
    good = values != 0
    values[good] = 1 / values[good]
