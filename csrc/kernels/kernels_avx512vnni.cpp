// AVX-512 with VNNI: four bytes multiplied and added in one instruction.
#define BPLS_VNNI
#include "kernels/simd_avx512.hpp"
#include "kernels/table-inl.hpp"

namespace bpls::kernels {

constinit const Table avx512vnni = make_table<Shapes{
    .f32_mr = 16, .f64_mr = 8, .nv = 1, .linear_mr = 8, .linear_nv = 2, .batch_nv = 3}>(
    quads_product<ByteQuads, 16, 1>(), bytes<ByteQuads, 8, 4>());

}  // namespace bpls::kernels
