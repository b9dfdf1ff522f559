// AVX-512: 32 registers hold a tile of 8 x 3 vectors and its operands.
#include "kernels/simd_avx512.hpp"
#include "kernels/table-inl.hpp"

namespace bpls::kernels {

constinit const Table avx512 = make_table<Shapes{
    .f32_mr = 8, .f64_mr = 8, .nv = 3, .linear_mr = 8, .linear_nv = 3, .batch_nv = 3}>(
    pairs_product<ByteProducts, 8, 3>(), narrow_bytes<I16Pairs>(), bytes<I16Pairs, 8>());

}  // namespace bpls::kernels
