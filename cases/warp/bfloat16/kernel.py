import warp as wp


@wp.kernel
def scale(x: wp.array(dtype=wp.bfloat16), factor: wp.bfloat16):
    i = wp.tid()
    x[i] = x[i] * factor
