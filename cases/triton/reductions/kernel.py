import triton
import triton.language as tl


@triton.jit
def reduce(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(out, tl.sum(v) + tl.max(v))
    tl.store(out + 1 + i, tl.cumsum(v))
    tl.store(out + 1 + B + i, tl.sort(v))
