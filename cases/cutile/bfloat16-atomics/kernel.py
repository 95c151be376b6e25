import io

import cuda.tile as ct
from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, export_kernel


@ct.kernel
def count(x, total):
    ct.atomic_add(total, ct.arange(128, dtype=ct.int32), ct.load(x, index=(0,), shape=(128,)))


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


signature = KernelSignature([array(ct.bfloat16), array(ct.bfloat16)], CallingConvention.cutile_python_v1())
export_kernel(count, [signature], io.BytesIO(), gpu_code="sm_100", output_format="cubin")
