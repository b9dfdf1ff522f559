// AVX2 and FMA: 16 registers hold a tile of 4 x 3 vectors and its operands.
#include "kernels/simd_avx2.hpp"
#include "kernels/table-inl.hpp"

namespace bpls::kernels {

constinit const Table avx2 = make_table<Shapes{
    .f32_mr = 4, .f64_mr = 4, .nv = 3, .linear_mr = 6, .linear_nv = 2, .batch_nv = 3}>(
    pairs_product<ByteProducts, 4, 3>(), narrow_bytes<I16Pairs>(), bytes<I16Pairs, 4>());

}  // namespace bpls::kernels
