// AVX-512 with VNNI, which multiplies and adds four bytes in one instruction.
#pragma once

#include "kernels/simd_avx512_common.hpp"

namespace bpls::kernels {
namespace {

// An operand holds four rows of bytes in each lane: signed ones on the left of a product, unsigned ones on the right.
struct ByteQuads : I32Sums {
    static constexpr int step_rows = 4;
    // Unsigned bytes x, given as the signed x - 128.
    static ByteQuads left(std::int32_t x) noexcept {
        return {{_mm512_xor_si512(_mm512_set1_epi32(x), _mm512_set1_epi8(-128))}};
    }
    static ByteQuads zero() noexcept { return {{_mm512_setzero_si512()}}; }
    static ByteQuads broadcast(std::int32_t x) noexcept { return {{_mm512_set1_epi32(x)}}; }
    static ByteQuads load(const std::int32_t* p) noexcept { return {{_mm512_loadu_si512(p)}}; }
    void multiply_add(ByteQuads left, ByteQuads right) noexcept {
        v = _mm512_dpbusd_epi32(v, right.v, left.v);
        pin(v);
    }
};

// The arithmetic of exact products of bytes.
using ByteProducts = ByteQuads;

}  // namespace
}  // namespace bpls::kernels
