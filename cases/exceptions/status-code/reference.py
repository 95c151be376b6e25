"""The first value is 0: its thread reports that, and the others invert theirs."""

DIVISION_BY_ZERO = 1


def invert(values, out, status):
    good = values != 0
    out[good] = 1 / values[good]
    if not good.all():
        status[0] = DIVISION_BY_ZERO
