"""Looks a value up."""

from collections import namedtuple

from numba import cuda

Point = namedtuple("Point", ["x", "y"])


def with_list(values):
    table = [1.0, 2.0]
    table.append(values[0])
    values[0] = table[2]


def with_dict(values):
    table = {1: values[0]}
    values[0] = table[1]


def with_mixed_tuple(values):
    table = (1, 2.5, values[0])
    values[0] = table[int(values[0])]


def with_tuple(values):
    table = (1.0, 2.5, 4.0)
    values[0] = table[int(values[0])]


def with_named_tuple(values):
    point = Point(values[0], values[1])
    values[0] = point.x + point.y


KINDS = {
    "list": with_list,
    "dict": with_dict,
    "mixed-tuple": with_mixed_tuple,
    "tuple": with_tuple,
    "named-tuple": with_named_tuple,
}
look_up = cuda.jit(**JIT_OPTIONS)(KINDS[FORM])  # noqa: F821
