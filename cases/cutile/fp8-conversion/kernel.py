import io

import cuda.tile as ct
from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, export_kernel


@ct.kernel
def convert(x, y):
    ct.store(y, index=(0,), tile=ct.astype(ct.load(x, index=(0,), shape=(128,)), ct.float8_e4m3fn))


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


signature = KernelSignature([array(ct.float32), array(ct.float8_e4m3fn)], CallingConvention.cutile_python_v1())
export_kernel(convert, [signature], io.BytesIO(), gpu_code="sm_100", output_format="cubin")
