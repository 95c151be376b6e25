import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import tcgen05
from cutlass.cute.runtime import make_fake_compact_tensor


@cute.kernel
def load(out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    if warp >= 4:
        cute.arch.warpgroup_reg_dealloc(40)
    if warp < 4:
        place = cute.make_ptr(cutlass.Float32, 0, mem_space=cute.AddressSpace.tmem, assumed_align=16)
        accumulator = cute.make_tensor(place, cute.make_layout((128, 64), stride=(65536, 1)))
        atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x64), cutlass.Float32)
        copy = tcgen05.make_tmem_copy(atom, accumulator).get_slice(thread)
        target = copy.partition_D(out)
        registers = cute.make_rmem_tensor(target.shape, cutlass.Float32)
        cute.copy(copy, copy.partition_S(accumulator), registers)
        cute.arch.fence_view_async_tmem_load()
        cute.autovec_copy(registers, target)


@cute.jit
def launch(out: cute.Tensor):
    load(out).launch(grid=[1, 1, 1], block=[384, 1, 1])


cute.compile(launch, make_fake_compact_tensor(cutlass.Float32, (128, 64), stride_order=(1, 0)))
