// Vectors of 64 bytes: AVX-512 F, BW, DQ and VL; VNNI where the translation unit is compiled for it.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace bpls::kernels {
namespace {

// Ends a step of a sum: without it GCC 12 starts all products of a tile before it adds any, and spills them.
template <class Register>
inline void pin([[maybe_unused]] Register& sum) noexcept {
#if defined(__GNUC__)
    __asm__ volatile("" : "+v"(sum));
#endif
}

struct F64 {
    using Scalar = double;
    static constexpr int lanes = 8;
    __m512d v;

    static F64 zero() noexcept { return {_mm512_setzero_pd()}; }
    static F64 broadcast(double x) noexcept { return {_mm512_set1_pd(x)}; }
    static F64 load(const double* p) noexcept { return {_mm512_loadu_pd(p)}; }
    void store(double* p) const noexcept { _mm512_storeu_pd(p, v); }
    void multiply_add(F64 a, F64 b) noexcept { v = _mm512_fmadd_pd(a.v, b.v, v); }
    void add_to(double* p) const noexcept {
        _mm512_storeu_pd(p, _mm512_add_pd(_mm512_loadu_pd(p), v));
    }

    static F64 load(const float* p) noexcept { return {_mm512_cvtps_pd(_mm256_loadu_ps(p))}; }
    // The lanes value(0), value(1), ...
    template <class F>
    static F64 each(F value) noexcept {
        return {_mm512_setr_pd(value(0), value(1), value(2), value(3), value(4), value(5), value(6),
                               value(7))};
    }
    void subtract_product(F64 a, F64 b) noexcept { v = _mm512_fnmadd_pd(a.v, b.v, v); }
    F64 operator+(F64 b) const noexcept { return {_mm512_add_pd(v, b.v)}; }
    F64 operator-(F64 b) const noexcept { return {_mm512_sub_pd(v, b.v)}; }
    F64 operator*(F64 b) const noexcept { return {_mm512_mul_pd(v, b.v)}; }
    F64 operator/(F64 b) const noexcept { return {_mm512_div_pd(v, b.v)}; }
    F64 root() const noexcept { return {_mm512_sqrt_pd(v)}; }
    F64 magnitude() const noexcept { return {_mm512_abs_pd(v)}; }
    // The larger of this and b, or b where one is NaN.
    F64 or_larger(F64 b) const noexcept { return {_mm512_max_pd(v, b.v)}; }
    // A bit for every lane that is not above b's, or where one is NaN.
    unsigned not_above(F64 b) const noexcept { return _mm512_cmp_pd_mask(v, b.v, _CMP_NGT_UQ); }
    static void transpose(F64 (&x)[lanes]) noexcept {
        __m512d pairs[lanes], quads[lanes];
        for (int i = 0; i < lanes; i += 2) {
            pairs[i] = _mm512_unpacklo_pd(x[i].v, x[i + 1].v);
            pairs[i + 1] = _mm512_unpackhi_pd(x[i].v, x[i + 1].v);
        }
        for (int i = 0; i < lanes; i += 4)
            for (int j = 0; j < 2; ++j) {
                quads[i + j] = _mm512_shuffle_f64x2(pairs[i + j], pairs[i + j + 2], 0x88);
                quads[i + j + 2] = _mm512_shuffle_f64x2(pairs[i + j], pairs[i + j + 2], 0xdd);
            }
        for (int i = 0; i < 4; ++i) {
            x[i].v = _mm512_shuffle_f64x2(quads[i], quads[i + 4], 0x88);
            x[i + 4].v = _mm512_shuffle_f64x2(quads[i], quads[i + 4], 0xdd);
        }
    }
};

struct F32 {
    using Scalar = float;
    static constexpr int lanes = 16;
    __m512 v;

    static F32 zero() noexcept { return {_mm512_setzero_ps()}; }
    static F32 broadcast(float x) noexcept { return {_mm512_set1_ps(x)}; }
    static F32 load(const float* p) noexcept { return {_mm512_loadu_ps(p)}; }
    void store(float* p) const noexcept { _mm512_storeu_ps(p, v); }
    void multiply_add(F32 a, F32 b) noexcept { v = _mm512_fmadd_ps(a.v, b.v, v); }
    void add_to(double* p) const noexcept {
        F64{_mm512_cvtps_pd(_mm512_castps512_ps256(v))}.add_to(p);
        F64{_mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1))}.add_to(p + 8);
    }
};

// Sixteen int32 sums; the two kinds of operand below share everything but the multiplication.
struct I32Sums {
    using Scalar = std::int32_t;
    static constexpr int lanes = 16;
    __m512i v;

    void add_to(double* p) const noexcept {
        F64{_mm512_cvtepi32_pd(_mm512_castsi512_si256(v))}.add_to(p);
        F64{_mm512_cvtepi32_pd(_mm512_extracti32x8_epi32(v, 1))}.add_to(p + 8);
    }
};

// An operand holds two int16 rows in each lane.
struct I16Pairs : I32Sums {
    static I16Pairs zero() noexcept { return {{_mm512_setzero_si512()}}; }
    static I16Pairs broadcast(std::int32_t x) noexcept { return {{_mm512_set1_epi32(x)}}; }
    static I16Pairs load(const std::int32_t* p) noexcept { return {{_mm512_loadu_si512(p)}}; }
    void multiply_add(I16Pairs a, I16Pairs b) noexcept {
        v = _mm512_add_epi32(v, _mm512_madd_epi16(a.v, b.v));
        pin(v);
    }
};

#if defined(BPLS_VNNI)
// An operand holds four rows of bytes in each lane: signed ones on the left of a product, unsigned ones on the right.
struct ByteQuads : I32Sums {
    static ByteQuads zero() noexcept { return {{_mm512_setzero_si512()}}; }
    static ByteQuads broadcast(std::int32_t x) noexcept { return {{_mm512_set1_epi32(x)}}; }
    static ByteQuads load(const std::int32_t* p) noexcept { return {{_mm512_loadu_si512(p)}}; }
    void multiply_add(ByteQuads left, ByteQuads right) noexcept {
        v = _mm512_dpbusd_epi32(v, right.v, left.v);
        pin(v);
    }
};
#endif

}  // namespace
}  // namespace bpls::kernels
