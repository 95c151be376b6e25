import triton
import triton.language as tl


@triton.jit
def add(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_add(out + i, tl.load(x + i))
