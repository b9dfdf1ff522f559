// AVX-512: 32 registers hold a tile of 8 x 3 vectors. Bytes are widened to int16.
#include "kernels/simd_avx512.hpp"
#include "kernels/table-inl.hpp"

namespace bpls::kernels {

constinit const Table avx512 = make_table<8, 3>(pairs_product<I16Pairs, 8, 3>());

}  // namespace bpls::kernels
