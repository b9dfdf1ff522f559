// AVX2 + FMA: 16 registers hold a tile of 4 x 3 vectors and its operands. Bytes are widened to int16, whose products need a
// register more: 6 x 2.
#include "kernels/simd_avx2.hpp"
#include "kernels/table-inl.hpp"

namespace bpls::kernels {

constinit const Table avx2 = make_table<4, 3>(pairs_product<I16Pairs, 6, 2>());

}  // namespace bpls::kernels
