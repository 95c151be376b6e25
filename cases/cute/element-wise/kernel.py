import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import make_fake_compact_tensor


@cute.kernel
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    c[thread] = a[thread] + b[thread]


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    add(a, b, c).launch(grid=[1, 1, 1], block=[128, 1, 1])


cute.compile(launch, *(make_fake_compact_tensor(cutlass.Float32, (128,)) for _ in range(3)))
