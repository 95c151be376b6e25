import io

import cuda.tile as ct
from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, export_kernel


@ct.kernel
def add(a, b, c):
    i = ct.bid(0)
    x, y = ct.load(a, index=(i,), shape=(128,)), ct.load(b, index=(i,), shape=(128,))
    ct.store(c, index=(i,), tile=x + y)


def array(dtype):
    return ArrayConstraint(
        dtype,
        1,
        index_dtype=ct.int32,
        stride_lower_bound_incl=0,
        stride_constant=[1],
        alias_groups=[],
        may_alias_internally=False,
    )


signature = KernelSignature([array(ct.float32)] * 3, CallingConvention.cutile_python_v1())
export_kernel(add, [signature], io.BytesIO(), gpu_code="sm_100", output_format="cubin")
