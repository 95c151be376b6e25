import warp as wp

wp.config.mode = "debug"
x = wp.zeros(4, dtype=wp.float32, device="cpu")
fused = wp.map(lambda a, b, c: a + 2.0 * b - c, x, x, x, return_kernel=True)
