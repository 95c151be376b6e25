// One warp multiplies one tile: C = A x B + C, with every fragment that the shape needs.
//
// ELEMENT is what the tensor cores multiply, STORAGE how it lies in memory, RESULT what they add up in.
#include <mma.h>

using namespace nvcuda;

typedef signed char int8;

extern "C" __global__ void multiply(const STORAGE *a, const STORAGE *b, RESULT *c)
{
    wmma::fragment<wmma::matrix_a, M, N, K, ELEMENT, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, M, N, K, ELEMENT, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, M, N, K, RESULT> sum;

    wmma::load_matrix_sync(left, a, K);
    wmma::load_matrix_sync(right, b, K);
    wmma::load_matrix_sync(sum, c, N, wmma::mem_row_major);
#if ROUND_TO_TF32
    // A float in memory has more digits than the tensor cores look at: round it, rather than have it cut.
    for (int i = 0; i < left.num_elements; ++i) {
        left.x[i] = wmma::__float_to_tf32(left.x[i]);
    }
    for (int i = 0; i < right.num_elements; ++i) {
        right.x[i] = wmma::__float_to_tf32(right.x[i]);
    }
#endif
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(c, sum, N, wmma::mem_row_major);
}
