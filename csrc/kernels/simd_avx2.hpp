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
