import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"M": m, "N": 64, "B": 32}, num_warps=w, num_stages=s) for m, w, s in ((64, 4, 2), (128, 8, 3))
    ],
    key=["K"],
)
@triton.jit
def matmul(a, b, c, K, M: tl.constexpr, N: tl.constexpr, B: tl.constexpr):
    rows, columns, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, B)
    total = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, K, B):
        left = tl.load(a + rows[:, None] * K + start + k[None, :])
        right = tl.load(b + (start + k)[:, None] * N + columns[None, :])
        total += tl.dot(left, right)
    tl.store(c + rows[:, None] * N + columns[None, :], total)
