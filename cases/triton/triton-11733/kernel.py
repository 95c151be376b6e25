import triton
import triton.language as tl


@triton.jit
def products(a, sa, b, sb, c, L: tl.constexpr, B: tl.constexpr):
    l, i, s = tl.arange(0, L)[:, None, None], tl.arange(0, B), tl.arange(0, B // 32)
    p = l * B * B + i[None, :, None] * B + i[None, None, :]
    q = l * B * (B // 32) + i[None, :, None] * (B // 32) + s[None, None, :]
    product = tl.dot_scaled(tl.load(a + p), tl.load(sa + q), "e4m3", tl.load(b + p), tl.load(sb + q), "e4m3")
    tl.store(c + p, product)
