// AVX-512 with VNNI, which multiplies and adds four bytes in one instruction.
#pragma once

#include "kernels/simd_avx512_common.hpp"

namespace bpls::kernels {
namespace {

// An operand holds four rows of bytes in each lane: signed ones on the left of a product, unsigned ones on the right.
struct ByteQuads : I32Sums {
    static constexpr int step_rows = 4;
    static constexpr int left_offset = 128;
    static ByteQuads zero() noexcept { return {{_mm512_setzero_si512()}}; }
    static ByteQuads broadcast(std::int32_t x) noexcept { return {{_mm512_set1_epi32(x)}}; }
    static ByteQuads load(const std::int32_t* p) noexcept { return {{_mm512_loadu_si512(p)}}; }
    void multiply_add(ByteQuads left, ByteQuads right) noexcept {
        v = pinned(_mm512_dpbusd_epi32(v, right.v, left.v));
    }

    // Lane i of `to` receives byte i of each of four rows.
    static void interleave(const unsigned char* from, std::ptrdiff_t row_stride, int count,
                           unsigned char* to) noexcept {
        if (count == lanes) {
            const auto row = [=](int r) noexcept {
                return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + r * row_stride));
            };
            _mm512_storeu_si512(to, interleave(row(0), row(1), row(2), row(3)));
        } else {
            const auto columns = __mmask16((1u << count) - 1);
            const auto row = [=](int r) noexcept {
                return _mm_maskz_loadu_epi8(columns, from + r * row_stride);
            };
            _mm512_mask_storeu_epi32(to, columns, interleave(row(0), row(1), row(2), row(3)));
        }
    }

    // Lane i holds byte i of each of four groups.
    static ByteQuads load_groups(const unsigned char* p, std::ptrdiff_t group_bytes) noexcept {
        const auto group = [=](int g) noexcept {
            return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + g * group_bytes));
        };
        return {{interleave(group(0), group(1), group(2), group(3))}};
    }
    ByteQuads minus_offset() const noexcept {
        return {{_mm512_xor_si512(v, _mm512_set1_epi8(-128))}};
    }
    ByteQuads permuted(Places from) const noexcept { return {{_mm512_permutexvar_epi32(from, v)}}; }

 private:
    static __m512i interleave(__m128i a, __m128i b, __m128i c, __m128i d) noexcept {
        const __m512i rows = _mm512_inserti32x4(
            _mm512_inserti32x4(_mm512_inserti32x4(_mm512_castsi128_si512(a), b, 1), c, 2), d, 3);
        // Four columns of all rows in each quarter, then the four bytes of a column in each lane.
        const __m512i quarters = _mm512_permutexvar_epi32(
            _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), rows);
        return _mm512_shuffle_epi8(
            quarters, _mm512_broadcast_i32x4(
                          _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)));
    }
};

// The arithmetic of exact products of bytes.
using ByteProducts = ByteQuads;

}  // namespace
}  // namespace bpls::kernels
