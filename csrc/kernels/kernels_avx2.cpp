// AVX2 + FMA: 16 registers hold a tile of 6 x 2 vectors and its operands. Bytes are widened to int16.
#include "kernels/simd_avx2.hpp"
#include "kernels/table-inl.hpp"

namespace bpls::kernels {

constinit const Table avx2 = make_table<Shapes{.mr = 6, .nv = 2, .linear_mr = 6, .batch_nv = 3}>(
    pairs_product<I16Pairs, 6, 2>());

}  // namespace bpls::kernels
