import triton
import triton.language as tl


@triton.jit
def fp8(a, sa, b, sb, c, B: tl.constexpr):
    i, s = tl.arange(0, B), tl.arange(0, B // 32)
    p, q = i[:, None] * B + i[None, :], i[:, None] * (B // 32) + s[None, :]
    tl.store(c + p, tl.dot_scaled(tl.load(a + p), tl.load(sa + q), "e4m3", tl.load(b + p), tl.load(sb + q), "e4m3"))


@triton.jit
def fp4(a, sa, b, sb, c, B: tl.constexpr):
    i, k, s = tl.arange(0, B), tl.arange(0, B // 2), tl.arange(0, B // 32)
    q = i[:, None] * (B // 32) + s[None, :]
    left = tl.load(a + i[:, None] * (B // 2) + k[None, :])
    right = tl.load(b + k[:, None] * B + i[None, :])
    tl.store(
        c + i[:, None] * B + i[None, :], tl.dot_scaled(left, tl.load(sa + q), "e2m1", right, tl.load(sb + q), "e2m1")
    )
