// Transposes an 8 x 8 matrix of 16-bit numbers, two in each thread.
extern "C" __global__ void transpose(unsigned *rows)
{
    unsigned columns;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(columns) : "r"(rows[threadIdx.x]));
    rows[threadIdx.x] = columns;
}
