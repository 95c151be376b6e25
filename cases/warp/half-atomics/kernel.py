import warp as wp


@wp.kernel
def count(x: wp.array(dtype=wp.float16), total: wp.array(dtype=wp.float16)):
    i = wp.tid()
    wp.atomic_add(total, 0, x[i])
