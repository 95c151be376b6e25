// The sum of the first n numbers, by a list of them.
extern "C" __global__ void total(const int *lengths, int *out)
{
    const int n = lengths[threadIdx.x];
#if FORM == 0
    int list[n];
#elif FORM == 1
    int *list = static_cast<int *>(alloca(n * sizeof(int)));
#else
    int list[64];
#endif
    int sum = 0;
    for (int i = 0; i < n; ++i) {
        list[i] = i;
    }
    for (int i = 0; i < n; ++i) {
        sum += list[(i * 7) % n];
    }
    out[threadIdx.x] = sum;
}
