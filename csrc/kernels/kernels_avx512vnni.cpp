// AVX-512 with VNNI: the tiles of AVX-512, and products of bytes by VNNI.
#include "kernels/simd_avx512vnni.hpp"
#include "kernels/table-inl.hpp"

namespace bpls::kernels {

constinit const Table avx512vnni = make_table<Shapes{
    .f32_mr = 8, .f64_mr = 8, .nv = 3, .linear_mr = 8, .linear_nv = 3, .batch_nv = 3}>(
    quads_product<ByteProducts, 8, 3>(), narrow_bytes<ByteQuads>(), bytes<ByteQuads, 8>());

}  // namespace bpls::kernels
