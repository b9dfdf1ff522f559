// AVX-512 without VNNI: bytes are widened to int16.
#pragma once

#include "kernels/simd_avx512_common.hpp"

namespace bpls::kernels {
namespace {

// An operand holds two int16 rows in each lane.
struct I16Pairs : I32Sums {
    static constexpr int step_rows = 2;
    static I16Pairs zero() noexcept { return {{_mm512_setzero_si512()}}; }
    static I16Pairs broadcast(std::int32_t x) noexcept { return {{_mm512_set1_epi32(x)}}; }
    static I16Pairs load(const std::int32_t* p) noexcept { return {{_mm512_loadu_si512(p)}}; }
    void multiply_add(I16Pairs a, I16Pairs b) noexcept {
        v = _mm512_add_epi32(v, _mm512_madd_epi16(a.v, b.v));
        pin(v);
    }
};

// The arithmetic of exact products of bytes.
using ByteProducts = I16Pairs;

}  // namespace
}  // namespace bpls::kernels
