#if WRITTEN_OUT
#define NUMBERS { 3.14159265358979323846f, __int_as_float(0x7f800000), __int_as_float(0x7fffffff) }
__device__ float number(int which)
{
    const float numbers[] = NUMBERS;
    return numbers[which];
}
#define NUMBER number(FORM)
#elif FORM == 0
#define NUMBER M_PI
#elif FORM == 1
#define NUMBER INFINITY
#else
#define NUMBER NAN
#endif

extern "C" __global__ void fill(float *x)
{
    x[threadIdx.x] = NUMBER;
}
