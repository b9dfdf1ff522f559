// AVX-512 with VNNI: four bytes multiplied and added in one instruction.
#define BPLS_VNNI
#include "kernels/simd_avx512.hpp"
#include "kernels/table-inl.hpp"

namespace bpls::kernels {

constinit const Table avx512vnni =
    make_table<Shapes{.mr = 12, .nv = 2, .linear_mr = 8, .batch_nv = 3}>(
        quads_product<ByteQuads, 12, 2>());

}  // namespace bpls::kernels
