// The upper half of a product of 64-bit numbers.
extern "C" __global__ void upper(const unsigned long long *a, const unsigned long long *b, unsigned long long *out)
{
    const unsigned __int128 product = static_cast<unsigned __int128>(a[threadIdx.x]) * b[threadIdx.x];
    out[threadIdx.x] = static_cast<unsigned long long>(product >> 64);
}
