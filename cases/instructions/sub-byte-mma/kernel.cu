// One instruction of each kind.
extern "C" __global__ void multiply(const unsigned *a, const unsigned *b, int2 *c)
{
    int2 sum = c[threadIdx.x];
    asm volatile("mma.sync.aligned." SHAPE " {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+r"(sum.x), "+r"(sum.y)
                 : "r"(a[threadIdx.x]), "r"(b[threadIdx.x]));
    c[threadIdx.x] = sum;
}
