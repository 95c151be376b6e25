"""The same sums on the host: part b is of the threads of block b, and part 0 ends as the sum of all."""

import numpy

THREADS = 128


def grid_sum(values, parts):
    block = numpy.arange(values.size) // THREADS % parts.size
    parts += numpy.bincount(block, values.astype(numpy.float64), parts.size)
    parts[0] = parts.astype(numpy.float64).sum()
