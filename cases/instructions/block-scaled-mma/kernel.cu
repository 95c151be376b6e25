// One warp multiplies a 16 x 64 tile by a 64 x 8 tile of 4-bit floats, with one scale for each 32 of them.
extern "C" __global__ void multiply(const uint4 *a, const uint2 *b, const unsigned *scales, float4 *c)
{
    const uint4 left = a[threadIdx.x];
    const uint2 right = b[threadIdx.x];
    float4 sum = c[threadIdx.x];
    asm volatile("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, {%10}, {0, 0}, {%11}, {0, 0};"
                 : "+f"(sum.x), "+f"(sum.y), "+f"(sum.z), "+f"(sum.w)
                 : "r"(left.x), "r"(left.y), "r"(left.z), "r"(left.w), "r"(right.x), "r"(right.y), "r"(scales[0]), "r"(scales[1]));
    c[threadIdx.x] = sum;
}
