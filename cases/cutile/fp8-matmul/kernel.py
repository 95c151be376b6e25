import io

import cuda.tile as ct
from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, export_kernel


@ct.kernel
def matmul(a, b, c):
    x, y = ct.load(a, index=(0, 0), shape=(64, 64)), ct.load(b, index=(0, 0), shape=(64, 64))
    ct.store(c, index=(0, 0), tile=ct.mma(x, y, ct.zeros((64, 64), dtype=ct.float32)))


def array(dtype):
    return ArrayConstraint(
        dtype,
        2,
        index_dtype=ct.int32,
        stride_lower_bound_incl=0,
        stride_constant=[None, 1],
        alias_groups=[],
        may_alias_internally=False,
    )


signature = KernelSignature(
    [array(ct.float8_e4m3fn), array(ct.float8_e4m3fn), array(ct.float32)], CallingConvention.cutile_python_v1()
)
export_kernel(matmul, [signature], io.BytesIO(), gpu_code="sm_100", output_format="cubin")
