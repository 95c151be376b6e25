#include <mma.h>

using namespace nvcuda;

// One tile, for each of the experimental precisions.
extern "C" __global__ void multiply(const void *a, const void *b, int *c)
{
    wmma::fragment<wmma::matrix_a, 8, 8, DEPTH, wmma::experimental::precision::ELEMENT, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 8, 8, DEPTH, wmma::experimental::precision::ELEMENT, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 8, 8, DEPTH, int> sum;
    wmma::fill_fragment(sum, 0);
    wmma::load_matrix_sync(left, a, DEPTH);
    wmma::load_matrix_sync(right, b, DEPTH);
#ifdef BITS
    wmma::bmma_sync(sum, left, right, sum, wmma::experimental::BITS);
#else
    wmma::mma_sync(sum, left, right, sum);
#endif
    wmma::store_matrix_sync(c, sum, 8, wmma::mem_row_major);
}
