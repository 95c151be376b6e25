// A check macro made for the host, used where an architecture is too old: the shape of
// https://github.com/pytorch/ao/issues/1648. On newer architectures the preprocessor takes the throw away.
#define CHECK(condition, message) \
    do {                          \
        if (!(condition)) {       \
            throw message;        \
        }                         \
    } while (0)

extern "C" __global__ void scale(float *values, float factor)
{
#if __CUDA_ARCH__ >= MINIMUM
    values[threadIdx.x] *= factor;
#else
    CHECK(false, "this kernel needs a newer architecture");
#endif
}
