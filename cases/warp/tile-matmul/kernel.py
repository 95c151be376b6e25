import warp as wp


@wp.kernel(enable_backward=False)
def matmul(a: wp.array2d(dtype=wp.float16), b: wp.array2d(dtype=wp.float16), c: wp.array2d(dtype=float)):
    total = wp.tile_zeros(shape=(32, 32), dtype=float)
    left = wp.tile_load(a, shape=(32, 32))
    right = wp.tile_load(b, shape=(32, 32))
    wp.tile_matmul(left, right, total)
    wp.tile_store(c, total)
