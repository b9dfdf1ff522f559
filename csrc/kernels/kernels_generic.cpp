// The level that every CPU runs. Products of bytes go through float32, which is exact for a block of rows.
#include "kernels/simd_generic.hpp"
#include "kernels/table-inl.hpp"

namespace bpls::kernels {

constinit const Table generic = make_table<Shapes{
    .f32_mr = 4, .f64_mr = 4, .nv = 2, .linear_mr = 4, .linear_nv = 2, .batch_nv = 2}>(
    float_product<ByteProducts, 4, 2>(), NarrowBytes{}, bytes<I16Pairs, 4>());

}  // namespace bpls::kernels
