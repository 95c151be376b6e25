// The accumulator of https://github.com/cupy/cupy/issues/8155. Its shape, 16 x 16 x 8, is the one of tf32:
// float alone does not say so, and the header defines it from compute capability 8.0 on.
#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void accumulate(float *out)
{
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
    wmma::fill_fragment(sum, 1.0f);
    wmma::store_matrix_sync(out, sum, 16, wmma::mem_row_major);
}
