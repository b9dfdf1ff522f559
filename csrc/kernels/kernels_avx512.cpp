// AVX-512: a tile is a panel by a panel, so that little of a triangle is wasted; its factors are operands in memory.
#include "kernels/simd_avx512.hpp"
#include "kernels/table-inl.hpp"

namespace bpls::kernels {

constinit const Table avx512 = make_table<Shapes{
    .f32_mr = 16, .f64_mr = 8, .nv = 1, .linear_mr = 8, .linear_nv = 3, .batch_nv = 3}>(
    pairs_product<ByteProducts, 16, 1>(), bytes<I16Pairs, 8>());

}  // namespace bpls::kernels
