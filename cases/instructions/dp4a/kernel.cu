// The products of four signed bytes, added up.
extern "C" __global__ void products(const int *a, const int *b, int *sums)
{
    sums[threadIdx.x] = __dp4a(a[threadIdx.x], b[threadIdx.x], sums[threadIdx.x]);
}
