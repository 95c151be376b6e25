import triton
import triton.language as tl


@triton.jit
def copy(x, out, M, N, B: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[B, B])
    target = tl.make_tensor_descriptor(out, shape=[M, N], strides=[N, 1], block_shape=[B, B])
    target.store([0, 0], source.load([0, 0]))
