// AVX-512 without VNNI: bytes are widened to int16.
#pragma once

#include "kernels/simd_avx512_common.hpp"

namespace bpls::kernels {
namespace {

// An operand holds two int16 rows in each lane.
struct I16Pairs : I32Sums {
    static constexpr int step_rows = 2;
    static constexpr int left_offset = 0;
    static I16Pairs zero() noexcept { return {{_mm512_setzero_si512()}}; }
    static I16Pairs broadcast(std::int32_t x) noexcept { return {{_mm512_set1_epi32(x)}}; }
    static I16Pairs load(const std::int32_t* p) noexcept { return {{_mm512_loadu_si512(p)}}; }
    void multiply_add(I16Pairs a, I16Pairs b) noexcept {
        v = pinned(_mm512_add_epi32(v, _mm512_madd_epi16(a.v, b.v)));
    }

    // Lane i holds byte i of each of two groups.
    static I16Pairs load_groups(const unsigned char* p, std::ptrdiff_t group_bytes) noexcept {
        const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)),
                      b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + group_bytes));
        return {{_mm512_cvtepu8_epi16(
            _mm256_set_m128i(_mm_unpackhi_epi8(a, b), _mm_unpacklo_epi8(a, b)))}};
    }
    I16Pairs minus_offset() const noexcept { return *this; }
    I16Pairs permuted(Places from) const noexcept { return {{_mm512_permutexvar_epi32(from, v)}}; }
};

// The arithmetic of exact products of bytes.
using ByteProducts = I16Pairs;

}  // namespace
}  // namespace bpls::kernels
