// AVX-512: 32 registers hold a tile of 12 x 2 vectors and its operands. Bytes are widened to int16.
#include "kernels/simd_avx512.hpp"
#include "kernels/table-inl.hpp"

namespace bpls::kernels {

constinit const Table avx512 = make_table<Shapes{.mr = 12, .nv = 2, .linear_mr = 8, .batch_nv = 3}>(
    pairs_product<I16Pairs, 12, 2>());

}  // namespace bpls::kernels
