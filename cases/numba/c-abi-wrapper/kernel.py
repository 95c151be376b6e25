"""A device function that is called through pointers, compiled for callers in C, and a kernel that calls it as it is."""

from numba import cuda, types
from numba.core.extending import intrinsic


@cuda.jit(device=True)
def twice(value):
    return 2 * value


@intrinsic
def through_pointers(typingctx, source, target):
    def generate(context, builder, signature, arguments):
        pointer = context.get_value_type(types.int32).as_pointer()
        value = builder.load(builder.bitcast(arguments[0], pointer))
        result = context.compile_internal(builder, lambda number: twice(number), types.int32(types.int32), [value])
        builder.store(result, builder.bitcast(arguments[1], pointer))
        return context.get_dummy_value()

    return types.void(types.voidptr, types.voidptr), generate


def wrapper(source, target):
    through_pointers(source, target)


@cuda.jit(**JIT_OPTIONS)  # noqa: F821
def apply(values):
    values[0] = twice(values[1])


NAME = {"abi_name": "wrapper"} if ABI == "c" else None  # noqa: F821
cuda.compile(wrapper, types.void(types.voidptr, types.voidptr), abi=ABI, abi_info=NAME)  # noqa: F821
