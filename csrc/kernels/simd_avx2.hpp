// Vectors of 32 bytes: AVX2 and FMA.
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
    __asm__ volatile("" : "+x"(sum));
#endif
}

struct F64 {
    using Scalar = double;
    static constexpr int lanes = 4;
    __m256d v;

    static F64 zero() noexcept { return {_mm256_setzero_pd()}; }
    static F64 broadcast(double x) noexcept { return {_mm256_set1_pd(x)}; }
    static F64 load(const double* p) noexcept { return {_mm256_loadu_pd(p)}; }
    void store(double* p) const noexcept { _mm256_storeu_pd(p, v); }
    void multiply_add(F64 a, F64 b) noexcept { v = _mm256_fmadd_pd(a.v, b.v, v); }
    void add_to(double* p) const noexcept {
        _mm256_storeu_pd(p, _mm256_add_pd(_mm256_loadu_pd(p), v));
    }

    static F64 load(const float* p) noexcept { return {_mm256_cvtps_pd(_mm_loadu_ps(p))}; }
    // The lanes value(0), value(1), ...
    template <class F>
    static F64 each(F value) noexcept {
        return {_mm256_setr_pd(value(0), value(1), value(2), value(3))};
    }
    void subtract_product(F64 a, F64 b) noexcept { v = _mm256_fnmadd_pd(a.v, b.v, v); }
    F64 operator+(F64 b) const noexcept { return {_mm256_add_pd(v, b.v)}; }
    F64 operator-(F64 b) const noexcept { return {_mm256_sub_pd(v, b.v)}; }
    F64 operator*(F64 b) const noexcept { return {_mm256_mul_pd(v, b.v)}; }
    F64 operator/(F64 b) const noexcept { return {_mm256_div_pd(v, b.v)}; }
    F64 root() const noexcept { return {_mm256_sqrt_pd(v)}; }
    F64 magnitude() const noexcept { return {_mm256_andnot_pd(_mm256_set1_pd(-0.0), v)}; }
    // The larger of this and b, or b where one is NaN.
    F64 or_larger(F64 b) const noexcept { return {_mm256_max_pd(v, b.v)}; }
    // A bit for every lane that is not above b's, or where one is NaN.
    unsigned not_above(F64 b) const noexcept {
        return unsigned(_mm256_movemask_pd(_mm256_cmp_pd(v, b.v, _CMP_NGT_UQ)));
    }
    static void transpose(F64 (&x)[lanes]) noexcept {
        const __m256d a = _mm256_unpacklo_pd(x[0].v, x[1].v),
                      b = _mm256_unpackhi_pd(x[0].v, x[1].v),
                      c = _mm256_unpacklo_pd(x[2].v, x[3].v),
                      d = _mm256_unpackhi_pd(x[2].v, x[3].v);
        x[0].v = _mm256_permute2f128_pd(a, c, 0x20);
        x[1].v = _mm256_permute2f128_pd(b, d, 0x20);
        x[2].v = _mm256_permute2f128_pd(a, c, 0x31);
        x[3].v = _mm256_permute2f128_pd(b, d, 0x31);
    }
};

struct F32 {
    using Scalar = float;
    static constexpr int lanes = 8;
    __m256 v;

    static F32 zero() noexcept { return {_mm256_setzero_ps()}; }
    static F32 broadcast(float x) noexcept { return {_mm256_set1_ps(x)}; }
    static F32 load(const float* p) noexcept { return {_mm256_loadu_ps(p)}; }
    void store(float* p) const noexcept { _mm256_storeu_ps(p, v); }
    void multiply_add(F32 a, F32 b) noexcept { v = _mm256_fmadd_ps(a.v, b.v, v); }
    void add_to(double* p) const noexcept {
        F64{_mm256_cvtps_pd(_mm256_castps256_ps128(v))}.add_to(p);
        F64{_mm256_cvtps_pd(_mm256_extractf128_ps(v, 1))}.add_to(p + 4);
    }
};

// Eight int32 sums; an operand holds two int16 rows in each lane.
struct I16Pairs {
    using Scalar = std::int32_t;
    static constexpr int lanes = 8;
    __m256i v;

    static I16Pairs zero() noexcept { return {_mm256_setzero_si256()}; }
    static I16Pairs broadcast(std::int32_t x) noexcept { return {_mm256_set1_epi32(x)}; }
    static I16Pairs load(const std::int32_t* p) noexcept {
        return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
    }
    void multiply_add(I16Pairs a, I16Pairs b) noexcept {
        v = _mm256_add_epi32(v, _mm256_madd_epi16(a.v, b.v));
        pin(v);
    }
    void add_to(double* p) const noexcept {
        F64{_mm256_cvtepi32_pd(_mm256_castsi256_si128(v))}.add_to(p);
        F64{_mm256_cvtepi32_pd(_mm256_extracti128_si256(v, 1))}.add_to(p + 4);
    }
};

}  // namespace
}  // namespace bpls::kernels
