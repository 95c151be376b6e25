import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import warp
from cutlass.cute.runtime import make_fake_compact_tensor


@cute.kernel
def product(a: cute.Tensor, b: cute.Tensor, sa: cute.Tensor, sb: cute.Tensor, c: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    op = warp.MmaMXF4NVF4Op(cutlass.Float4E2M1FN, cutlass.Float32, cutlass.Float8E4M3FN)
    tiled = cute.make_tiled_mma(op)
    part = tiled.get_slice(thread)
    ra = tiled.make_fragment_A(part.partition_A(a))
    rb = tiled.make_fragment_B(part.partition_B(b))
    target = part.partition_C(c)
    rc = tiled.make_fragment_C(target)
    rc.fill(0.0)
    rsa = cute.make_rmem_tensor(4, cutlass.Float8E4M3FN)
    rsb = cute.make_rmem_tensor(4, cutlass.Float8E4M3FN)
    cute.autovec_copy(part.partition_A(a), ra)
    cute.autovec_copy(part.partition_B(b), rb)
    cute.autovec_copy(sa, rsa)
    cute.autovec_copy(sb, rsb)
    atom = cute.make_mma_atom(op)
    atom.set(warp.Field.SFA, rsa.iterator)
    atom.set(warp.Field.SFB, rsb.iterator)
    cute.gemm(atom, rc, ra, rb, rc)
    cute.autovec_copy(rc, target)


@cute.jit
def launch(a: cute.Tensor, b: cute.Tensor, sa: cute.Tensor, sb: cute.Tensor, c: cute.Tensor):
    product(a, b, sa, sb, c).launch(grid=[1, 1, 1], block=[32, 1, 1])


F4, F8 = cutlass.Float4E2M1FN, cutlass.Float8E4M3FN
cute.compile(
    launch,
    make_fake_compact_tensor(F4, (16, 64), stride_order=(1, 0)),
    make_fake_compact_tensor(F4, (8, 64), stride_order=(1, 0)),
    make_fake_compact_tensor(F8, (4,)),
    make_fake_compact_tensor(F8, (4,)),
    make_fake_compact_tensor(cutlass.Float32, (16, 8), stride_order=(1, 0)),
)
