// One warp multiplies a 16 x 32 tile by a 32 x 8 tile.
extern "C" __global__ void multiply(const uint4 *a, const uint2 *b, float4 *c)
{
    const uint4 left = a[threadIdx.x];
    const uint2 right = b[threadIdx.x];
    float4 sum = c[threadIdx.x];
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum.x), "+f"(sum.y), "+f"(sum.z), "+f"(sum.w)
                 : "r"(left.x), "r"(left.y), "r"(left.z), "r"(left.w), "r"(right.x), "r"(right.y));
    c[threadIdx.x] = sum;
}
