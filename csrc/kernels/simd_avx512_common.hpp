// Vectors of 64 bytes: AVX-512 F, BW, DQ and VL. Levels that build on them add their products of bytes.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace bpls::kernels {
namespace {

// Returns its argument and ends a step of a sum: without it GCC 12 starts all products of a tile before it adds any, and spills
// them. By value: GCC 12 keeps an array of sums in memory if its elements are operands of the assembler.
template <class Register>
inline Register pinned(Register sum) noexcept {
#if defined(__GNUC__)
    __asm__ volatile("" : "+v"(sum));
#endif
    return sum;
}

// Whether any byte of a vector is not zero.
inline bool any_bit(const unsigned char* p) noexcept {
    const __m512i x = _mm512_loadu_si512(p);
    return _mm512_test_epi64_mask(x, x) != 0;
}

struct F64 {
    using Scalar = double;
    using Sum = double;  // in memory
    using Bits = std::uint64_t;
    static constexpr int lanes = 8;
    static constexpr int step_rows = 1;  // rows of data in a lane
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
    static F64 load(const std::int32_t* p) noexcept {
        return {_mm512_cvtepi32_pd(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
    }
    // A vector with the lanes value(0), value(1), ...
    template <class F>
    static F64 each(F value) noexcept {
        return {_mm512_setr_pd(value(0), value(1), value(2), value(3), value(4), value(5), value(6),
                               value(7))};
    }
    void subtract_product(F64 a, F64 b) noexcept { v = _mm512_fnmadd_pd(a.v, b.v, v); }
    // Lane i of permuted(places([](int i) { return p(i); })) is lane p(i).
    using Places = __m512i;
    template <class F>
    static Places places(F place) noexcept {
        std::int64_t lane[lanes];
        for (int i = 0; i < lanes; ++i) lane[i] = place(i);
        return _mm512_loadu_si512(lane);
    }
    F64 permuted(Places from) const noexcept { return {_mm512_permutexvar_pd(from, v)}; }
    F64 root() const noexcept { return {_mm512_sqrt_pd(v)}; }
    // Sets a bit for every lane that is not above b's, or where one of the two is NaN.
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

    static F64 load_first(const double* p, int count) noexcept {
        return {_mm512_maskz_loadu_pd(first(count), p)};
    }
    static F64 load_first(const double* p, int count, double fill) noexcept {
        return {_mm512_mask_loadu_pd(_mm512_set1_pd(fill), first(count), p)};
    }
    F64 keep_first(int count) const noexcept { return {_mm512_maskz_mov_pd(first(count), v)}; }
    void store_first(double* p, int count) const noexcept {
        _mm512_mask_storeu_pd(p, first(count), v);
    }
    static __mmask8 first(int count) noexcept { return __mmask8((1u << count) - 1); }

    friend F64 operator+(F64 a, F64 b) noexcept { return {_mm512_add_pd(a.v, b.v)}; }
    friend F64 operator-(F64 a, F64 b) noexcept { return {_mm512_sub_pd(a.v, b.v)}; }
    friend F64 operator*(F64 a, F64 b) noexcept { return {_mm512_mul_pd(a.v, b.v)}; }
    friend F64 operator/(F64 a, F64 b) noexcept { return {_mm512_div_pd(a.v, b.v)}; }
    friend F64 mul_add(F64 a, F64 b, F64 c) noexcept { return {_mm512_fmadd_pd(a.v, b.v, c.v)}; }
    friend F64 neg_mul_add(F64 a, F64 b, F64 c) noexcept {
        return {_mm512_fnmadd_pd(a.v, b.v, c.v)};
    }

    friend F64 larger(F64 a, F64 b) noexcept { return {_mm512_max_pd(a.v, b.v)}; }
    friend F64 smaller(F64 a, F64 b) noexcept { return {_mm512_min_pd(a.v, b.v)}; }
    friend F64 where_less(F64 a, F64 b, F64 x, F64 y) noexcept {
        return {_mm512_mask_blend_pd(_mm512_cmp_pd_mask(a.v, b.v, _CMP_LT_OQ), y.v, x.v)};
    }
    friend F64 unless_nan(F64 z, F64 x) noexcept {
        return {_mm512_mask_blend_pd(_mm512_cmp_pd_mask(z.v, z.v, _CMP_UNORD_Q), x.v, z.v)};
    }

    static F64 of_bits(std::uint64_t b) noexcept {
        return {_mm512_castsi512_pd(_mm512_set1_epi64(std::int64_t(b)))};
    }
    friend F64 operator&(F64 a, F64 b) noexcept { return {_mm512_and_pd(a.v, b.v)}; }
    friend F64 operator|(F64 a, F64 b) noexcept { return {_mm512_or_pd(a.v, b.v)}; }
    // The magnitude of x with the sign of y: one operation.
    static F64 with_sign(F64 y, F64 x) noexcept {
        const __m512i sign = _mm512_set1_epi64(std::int64_t(1) << 63);
        return {_mm512_castsi512_pd(_mm512_ternarylogic_epi64(sign, _mm512_castpd_si512(y.v),
                                                              _mm512_castpd_si512(x.v), 0xca))};
    }
    friend F64 plus_bits(F64 a, F64 b) noexcept {
        return {_mm512_castsi512_pd(
            _mm512_add_epi64(_mm512_castpd_si512(a.v), _mm512_castpd_si512(b.v)))};
    }
    friend F64 minus_bits(F64 a, F64 b) noexcept {
        return {_mm512_castsi512_pd(
            _mm512_sub_epi64(_mm512_castpd_si512(a.v), _mm512_castpd_si512(b.v)))};
    }
    template <int count>
    F64 left_by() const noexcept {
        return {_mm512_castsi512_pd(_mm512_slli_epi64(_mm512_castpd_si512(v), count))};
    }
    template <int count>
    F64 right_by() const noexcept {
        return {_mm512_castsi512_pd(_mm512_srli_epi64(_mm512_castpd_si512(v), count))};
    }

    // Writes first + i for the lanes i that are not zero, as a whole vector, and returns their number.
    static int list_nonzero(const std::uint64_t* p, int first, int* out) noexcept {
        const __m512i bits = _mm512_loadu_si512(p);
        const __mmask8 nonzero = _mm512_test_epi64_mask(bits, bits);
        const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        const __m256i place = _mm256_add_epi32(_mm256_set1_epi32(first), lane);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                            _mm256_maskz_compress_epi32(nonzero, place));
        return _mm_popcnt_u32(nonzero);
    }

    double highest() const noexcept { return _mm512_reduce_max_pd(v); }
    double total() const noexcept { return _mm512_reduce_add_pd(v); }
    // Lane i of the result is the sum of the lanes of x[i].
    static F64 sums(const F64 (&x)[lanes]) noexcept {
        const auto pair = [&](int i) noexcept {
            return _mm512_add_pd(_mm512_unpacklo_pd(x[i].v, x[i + 1].v),
                                 _mm512_unpackhi_pd(x[i].v, x[i + 1].v));
        };
        const auto halves = [](__m512d a, __m512d b) noexcept {
            return _mm512_add_pd(_mm512_shuffle_f64x2(a, b, 0x88),
                                 _mm512_shuffle_f64x2(a, b, 0xdd));
        };
        return {halves(halves(pair(0), pair(2)), halves(pair(4), pair(6)))};
    }
};

struct F32 {
    using Scalar = float;
    using Sum = double;
    using Bits = std::uint32_t;
    static constexpr int lanes = 16;
    static constexpr int step_rows = 1;  // rows of data in a lane
    __m512 v;

    static F32 zero() noexcept { return {_mm512_setzero_ps()}; }
    static F32 broadcast(float x) noexcept { return {_mm512_set1_ps(x)}; }
    static F32 load(const float* p) noexcept { return {_mm512_loadu_ps(p)}; }
    void store(float* p) const noexcept { _mm512_storeu_ps(p, v); }
    void store(double* p) const noexcept {
        F64{_mm512_cvtps_pd(_mm512_castps512_ps256(v))}.store(p);
        F64{_mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1))}.store(p + 8);
    }
    void multiply_add(F32 a, F32 b) noexcept { v = _mm512_fmadd_ps(a.v, b.v, v); }
    void add_to(double* p) const noexcept {
        F64{_mm512_cvtps_pd(_mm512_castps512_ps256(v))}.add_to(p);
        F64{_mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1))}.add_to(p + 8);
    }

    using Places = __m512i;
    template <class F>
    static Places places(F place) noexcept {
        std::int32_t lane[lanes];
        for (int i = 0; i < lanes; ++i) lane[i] = place(i);
        return _mm512_loadu_si512(lane);
    }
    F32 permuted(Places from) const noexcept { return {_mm512_permutexvar_ps(from, v)}; }

    static F32 of_integers(__m512i v) noexcept { return {_mm512_cvtepi32_ps(v)}; }

    static F32 load_first(const float* p, int count) noexcept {
        return {_mm512_maskz_loadu_ps(first(count), p)};
    }
    static F32 load_first(const float* p, int count, float fill) noexcept {
        return {_mm512_mask_loadu_ps(_mm512_set1_ps(fill), first(count), p)};
    }
    F32 keep_first(int count) const noexcept { return {_mm512_maskz_mov_ps(first(count), v)}; }
    void store_first(float* p, int count) const noexcept {
        _mm512_mask_storeu_ps(p, first(count), v);
    }
    static __mmask16 first(int count) noexcept { return __mmask16((1u << count) - 1); }

    friend F32 operator+(F32 a, F32 b) noexcept { return {_mm512_add_ps(a.v, b.v)}; }
    friend F32 operator-(F32 a, F32 b) noexcept { return {_mm512_sub_ps(a.v, b.v)}; }
    friend F32 operator*(F32 a, F32 b) noexcept { return {_mm512_mul_ps(a.v, b.v)}; }
    friend F32 operator/(F32 a, F32 b) noexcept { return {_mm512_div_ps(a.v, b.v)}; }
    friend F32 mul_add(F32 a, F32 b, F32 c) noexcept { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
    friend F32 neg_mul_add(F32 a, F32 b, F32 c) noexcept {
        return {_mm512_fnmadd_ps(a.v, b.v, c.v)};
    }

    friend F32 larger(F32 a, F32 b) noexcept { return {_mm512_max_ps(a.v, b.v)}; }
    friend F32 smaller(F32 a, F32 b) noexcept { return {_mm512_min_ps(a.v, b.v)}; }
    friend F32 where_less(F32 a, F32 b, F32 x, F32 y) noexcept {
        return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), y.v, x.v)};
    }
    friend F32 unless_nan(F32 z, F32 x) noexcept {
        return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(z.v, z.v, _CMP_UNORD_Q), x.v, z.v)};
    }

    static F32 of_bits(std::uint32_t b) noexcept {
        return {_mm512_castsi512_ps(_mm512_set1_epi32(int(b)))};
    }
    friend F32 operator&(F32 a, F32 b) noexcept { return {_mm512_and_ps(a.v, b.v)}; }
    friend F32 operator|(F32 a, F32 b) noexcept { return {_mm512_or_ps(a.v, b.v)}; }
    static F32 with_sign(F32 y, F32 x) noexcept {
        const __m512i sign = _mm512_set1_epi32(std::int32_t(1) << 31);
        return {_mm512_castsi512_ps(_mm512_ternarylogic_epi32(sign, _mm512_castps_si512(y.v),
                                                              _mm512_castps_si512(x.v), 0xca))};
    }
    friend F32 plus_bits(F32 a, F32 b) noexcept {
        return {_mm512_castsi512_ps(
            _mm512_add_epi32(_mm512_castps_si512(a.v), _mm512_castps_si512(b.v)))};
    }
    friend F32 minus_bits(F32 a, F32 b) noexcept {
        return {_mm512_castsi512_ps(
            _mm512_sub_epi32(_mm512_castps_si512(a.v), _mm512_castps_si512(b.v)))};
    }
    template <int count>
    F32 left_by() const noexcept {
        return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(v), count))};
    }
    template <int count>
    F32 right_by() const noexcept {
        return {_mm512_castsi512_ps(_mm512_srli_epi32(_mm512_castps_si512(v), count))};
    }

    static int list_nonzero(const std::uint32_t* p, int first, int* out) noexcept {
        const __m512i bits = _mm512_loadu_si512(p);
        const __mmask16 nonzero = _mm512_test_epi32_mask(bits, bits);
        const __m512i lane =
            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        const __m512i place = _mm512_add_epi32(_mm512_set1_epi32(first), lane);
        _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(nonzero, place));
        return _mm_popcnt_u32(nonzero);
    }

    float highest() const noexcept { return _mm512_reduce_max_ps(v); }
    double total() const noexcept {
        return (F64{_mm512_cvtps_pd(_mm512_castps512_ps256(v))} +
                F64{_mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1))})
            .total();
    }
    // Lane i of the result is the sum of the lanes of x[i].
    static F32 sums(const F32 (&x)[lanes]) noexcept {
        const auto pair = [&](int i) noexcept {
            return _mm512_castps_pd(_mm512_add_ps(_mm512_unpacklo_ps(x[i].v, x[i + 1].v),
                                                  _mm512_unpackhi_ps(x[i].v, x[i + 1].v)));
        };
        const auto quad = [&](int i) noexcept {
            const __m512d a = pair(i), b = pair(i + 2);
            return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
                                 _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
        };
        const auto halves = [](__m512 a, __m512 b) noexcept {
            return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88),
                                 _mm512_shuffle_f32x4(a, b, 0xdd));
        };
        return {halves(halves(quad(0), quad(4)), halves(quad(8), quad(12)))};
    }
};

// Sixteen int32 sums; kinds of operands differ in their multiplication only.
struct I32Sums {
    using Scalar = std::int32_t;
    using Sum = std::int32_t;
    static constexpr int lanes = 16;
    __m512i v;

    void add_to(double* p) const noexcept {
        F64{_mm512_cvtepi32_pd(_mm512_castsi512_si256(v))}.add_to(p);
        F64{_mm512_cvtepi32_pd(_mm512_extracti32x8_epi32(v, 1))}.add_to(p + 8);
    }
    using Places = F32::Places;
    template <class F>
    static Places places(F place) noexcept {
        return F32::places(place);
    }
    void store(std::int32_t* p) const noexcept { _mm512_storeu_si512(p, v); }
    void add_to(std::int32_t* p) const noexcept {
        _mm512_storeu_si512(p, _mm512_add_epi32(_mm512_loadu_si512(p), v));
    }
};

}  // namespace
}  // namespace bpls::kernels
