#if FORM == 2
#if __CUDACC_VER_MAJOR__ >= 13
typedef double4_32a Four;
#else
typedef double4 Four;
#endif
#elif FORM == 1
typedef double4_32a Four;
#else
typedef double4 Four;
#endif

extern "C" __global__ void twice(Four *values)
{
    Four value = values[threadIdx.x];
    value.x += value.x;
    value.y += value.y;
    value.z += value.z;
    value.w += value.w;
    values[threadIdx.x] = value;
}
