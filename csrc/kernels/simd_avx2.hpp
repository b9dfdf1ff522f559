// Vectors of 32 bytes: AVX2 and FMA.
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
    __asm__ volatile("" : "+x"(sum));
#endif
    return sum;
}

// Whether any byte of a vector is not zero.
inline bool any_bit(const unsigned char* p) noexcept {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm256_testz_si256(x, x) == 0;
}

// All bits set in the first `count` lanes.
inline __m256i first_64(int count) noexcept {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
}
inline __m256i first_32(int count) noexcept {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

struct F64 {
    using Scalar = double;
    using Sum = double;  // in memory
    using Bits = std::uint64_t;
    static constexpr int lanes = 4;
    static constexpr int step_rows = 1;  // rows of data in a lane
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
    static F64 load(const std::int32_t* p) noexcept {
        return {_mm256_cvtepi32_pd(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
    }
    // A vector with the lanes value(0), value(1), ...
    template <class F>
    static F64 each(F value) noexcept {
        return {_mm256_setr_pd(value(0), value(1), value(2), value(3))};
    }
    void subtract_product(F64 a, F64 b) noexcept { v = _mm256_fnmadd_pd(a.v, b.v, v); }
    // Lane i of permuted(places([](int i) { return p(i); })) is lane p(i).
    using Places = __m256i;
    template <class F>
    static Places places(F place) noexcept {
        std::int32_t half[2 * lanes];
        for (int i = 0; i < 2 * lanes; ++i) half[i] = 2 * place(i / 2) + i % 2;
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(half));
    }
    F64 permuted(Places from) const noexcept {
        return {_mm256_castps_pd(_mm256_permutevar8x32_ps(_mm256_castpd_ps(v), from))};
    }
    F64 root() const noexcept { return {_mm256_sqrt_pd(v)}; }
    // Sets a bit for every lane that is not above b's, or where one of the two is NaN.
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

    static F64 load_first(const double* p, int count) noexcept {
        return {_mm256_maskload_pd(p, first_64(count))};
    }
    static F64 load_first(const double* p, int count, double fill) noexcept {
        const __m256i mask = first_64(count);
        return {_mm256_blendv_pd(_mm256_set1_pd(fill), _mm256_maskload_pd(p, mask),
                                 _mm256_castsi256_pd(mask))};
    }
    F64 keep_first(int count) const noexcept {
        return {_mm256_and_pd(v, _mm256_castsi256_pd(first_64(count)))};
    }
    void store_first(double* p, int count) const noexcept {
        __m128d rest = _mm256_castpd256_pd128(v);
        if (count & 2) {
            _mm_storeu_pd(p, rest);
            rest = _mm256_extractf128_pd(v, 1);
            p += 2;
        }
        if (count & 1) _mm_store_sd(p, rest);
    }

    friend F64 operator+(F64 a, F64 b) noexcept { return {_mm256_add_pd(a.v, b.v)}; }
    friend F64 operator-(F64 a, F64 b) noexcept { return {_mm256_sub_pd(a.v, b.v)}; }
    friend F64 operator*(F64 a, F64 b) noexcept { return {_mm256_mul_pd(a.v, b.v)}; }
    friend F64 operator/(F64 a, F64 b) noexcept { return {_mm256_div_pd(a.v, b.v)}; }
    friend F64 mul_add(F64 a, F64 b, F64 c) noexcept { return {_mm256_fmadd_pd(a.v, b.v, c.v)}; }
    friend F64 neg_mul_add(F64 a, F64 b, F64 c) noexcept {
        return {_mm256_fnmadd_pd(a.v, b.v, c.v)};
    }

    friend F64 larger(F64 a, F64 b) noexcept { return {_mm256_max_pd(a.v, b.v)}; }
    friend F64 smaller(F64 a, F64 b) noexcept { return {_mm256_min_pd(a.v, b.v)}; }
    friend F64 where_less(F64 a, F64 b, F64 x, F64 y) noexcept {
        return {_mm256_blendv_pd(y.v, x.v, _mm256_cmp_pd(a.v, b.v, _CMP_LT_OQ))};
    }
    friend F64 unless_nan(F64 z, F64 x) noexcept {
        return {_mm256_blendv_pd(x.v, z.v, _mm256_cmp_pd(z.v, z.v, _CMP_UNORD_Q))};
    }

    static F64 of_bits(std::uint64_t b) noexcept {
        return {_mm256_castsi256_pd(_mm256_set1_epi64x(std::int64_t(b)))};
    }
    friend F64 operator&(F64 a, F64 b) noexcept { return {_mm256_and_pd(a.v, b.v)}; }
    friend F64 operator|(F64 a, F64 b) noexcept { return {_mm256_or_pd(a.v, b.v)}; }
    friend F64 plus_bits(F64 a, F64 b) noexcept {
        return {_mm256_castsi256_pd(
            _mm256_add_epi64(_mm256_castpd_si256(a.v), _mm256_castpd_si256(b.v)))};
    }
    friend F64 minus_bits(F64 a, F64 b) noexcept {
        return {_mm256_castsi256_pd(
            _mm256_sub_epi64(_mm256_castpd_si256(a.v), _mm256_castpd_si256(b.v)))};
    }
    template <int count>
    F64 left_by() const noexcept {
        return {_mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(v), count))};
    }
    template <int count>
    F64 right_by() const noexcept {
        return {_mm256_castsi256_pd(_mm256_srli_epi64(_mm256_castpd_si256(v), count))};
    }

    double highest() const noexcept {
        const __m128d pair = _mm_max_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
        return _mm_cvtsd_f64(_mm_max_sd(pair, _mm_unpackhi_pd(pair, pair)));
    }
    double total() const noexcept {
        const __m128d pair = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
        return _mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair)));
    }
    // Lane i of the result is the sum of the lanes of x[i].
    static F64 sums(const F64 (&x)[lanes]) noexcept {
        const __m256d a = _mm256_hadd_pd(x[0].v, x[1].v), b = _mm256_hadd_pd(x[2].v, x[3].v);
        return {
            _mm256_add_pd(_mm256_permute2f128_pd(a, b, 0x20), _mm256_permute2f128_pd(a, b, 0x31))};
    }
};

struct F32 {
    using Scalar = float;
    using Sum = double;
    using Bits = std::uint32_t;
    static constexpr int lanes = 8;
    static constexpr int step_rows = 1;  // rows of data in a lane
    __m256 v;

    static F32 zero() noexcept { return {_mm256_setzero_ps()}; }
    static F32 broadcast(float x) noexcept { return {_mm256_set1_ps(x)}; }
    static F32 load(const float* p) noexcept { return {_mm256_loadu_ps(p)}; }
    void store(float* p) const noexcept { _mm256_storeu_ps(p, v); }
    void store(double* p) const noexcept {
        F64{_mm256_cvtps_pd(_mm256_castps256_ps128(v))}.store(p);
        F64{_mm256_cvtps_pd(_mm256_extractf128_ps(v, 1))}.store(p + 4);
    }
    void multiply_add(F32 a, F32 b) noexcept { v = _mm256_fmadd_ps(a.v, b.v, v); }
    void add_to(double* p) const noexcept {
        F64{_mm256_cvtps_pd(_mm256_castps256_ps128(v))}.add_to(p);
        F64{_mm256_cvtps_pd(_mm256_extractf128_ps(v, 1))}.add_to(p + 4);
    }

    using Places = __m256i;
    template <class F>
    static Places places(F place) noexcept {
        std::int32_t lane[lanes];
        for (int i = 0; i < lanes; ++i) lane[i] = place(i);
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lane));
    }
    F32 permuted(Places from) const noexcept { return {_mm256_permutevar8x32_ps(v, from)}; }

    static F32 of_integers(__m256i v) noexcept { return {_mm256_cvtepi32_ps(v)}; }

    static F32 load_first(const float* p, int count) noexcept {
        return {_mm256_maskload_ps(p, first_32(count))};
    }
    static F32 load_first(const float* p, int count, float fill) noexcept {
        const __m256i mask = first_32(count);
        return {_mm256_blendv_ps(_mm256_set1_ps(fill), _mm256_maskload_ps(p, mask),
                                 _mm256_castsi256_ps(mask))};
    }
    F32 keep_first(int count) const noexcept {
        return {_mm256_and_ps(v, _mm256_castsi256_ps(first_32(count)))};
    }
    // A masked store is slower than these three.
    void store_first(float* p, int count) const noexcept {
        __m128 rest = _mm256_castps256_ps128(v);
        if (count & 4) {
            _mm_storeu_ps(p, rest);
            rest = _mm256_extractf128_ps(v, 1);
            p += 4;
        }
        if (count & 2) {
            _mm_storel_pi(reinterpret_cast<__m64*>(p), rest);
            rest = _mm_movehl_ps(rest, rest);
            p += 2;
        }
        if (count & 1) _mm_store_ss(p, rest);
    }

    friend F32 operator+(F32 a, F32 b) noexcept { return {_mm256_add_ps(a.v, b.v)}; }
    friend F32 operator-(F32 a, F32 b) noexcept { return {_mm256_sub_ps(a.v, b.v)}; }
    friend F32 operator*(F32 a, F32 b) noexcept { return {_mm256_mul_ps(a.v, b.v)}; }
    friend F32 operator/(F32 a, F32 b) noexcept { return {_mm256_div_ps(a.v, b.v)}; }
    friend F32 mul_add(F32 a, F32 b, F32 c) noexcept { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
    friend F32 neg_mul_add(F32 a, F32 b, F32 c) noexcept {
        return {_mm256_fnmadd_ps(a.v, b.v, c.v)};
    }

    friend F32 larger(F32 a, F32 b) noexcept { return {_mm256_max_ps(a.v, b.v)}; }
    friend F32 smaller(F32 a, F32 b) noexcept { return {_mm256_min_ps(a.v, b.v)}; }
    friend F32 where_less(F32 a, F32 b, F32 x, F32 y) noexcept {
        return {_mm256_blendv_ps(y.v, x.v, _mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ))};
    }
    friend F32 unless_nan(F32 z, F32 x) noexcept {
        return {_mm256_blendv_ps(x.v, z.v, _mm256_cmp_ps(z.v, z.v, _CMP_UNORD_Q))};
    }

    static F32 of_bits(std::uint32_t b) noexcept {
        return {_mm256_castsi256_ps(_mm256_set1_epi32(int(b)))};
    }
    friend F32 operator&(F32 a, F32 b) noexcept { return {_mm256_and_ps(a.v, b.v)}; }
    friend F32 operator|(F32 a, F32 b) noexcept { return {_mm256_or_ps(a.v, b.v)}; }
    friend F32 plus_bits(F32 a, F32 b) noexcept {
        return {_mm256_castsi256_ps(
            _mm256_add_epi32(_mm256_castps_si256(a.v), _mm256_castps_si256(b.v)))};
    }
    friend F32 minus_bits(F32 a, F32 b) noexcept {
        return {_mm256_castsi256_ps(
            _mm256_sub_epi32(_mm256_castps_si256(a.v), _mm256_castps_si256(b.v)))};
    }
    template <int count>
    F32 left_by() const noexcept {
        return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(v), count))};
    }
    template <int count>
    F32 right_by() const noexcept {
        return {_mm256_castsi256_ps(_mm256_srli_epi32(_mm256_castps_si256(v), count))};
    }

    float highest() const noexcept {
        const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
        const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
    }
    double total() const noexcept {
        return (F64{_mm256_cvtps_pd(_mm256_castps256_ps128(v))} +
                F64{_mm256_cvtps_pd(_mm256_extractf128_ps(v, 1))})
            .total();
    }
    // Lane i of the result is the sum of the lanes of x[i].
    static F32 sums(const F32 (&x)[lanes]) noexcept {
        const __m256 a = _mm256_hadd_ps(_mm256_hadd_ps(x[0].v, x[1].v),
                                        _mm256_hadd_ps(x[2].v, x[3].v)),
                     b = _mm256_hadd_ps(_mm256_hadd_ps(x[4].v, x[5].v),
                                        _mm256_hadd_ps(x[6].v, x[7].v));
        return {
            _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31))};
    }
};

// Eight int32 sums; an operand holds two int16 rows in each lane.
struct I16Pairs {
    using Scalar = std::int32_t;
    using Sum = std::int32_t;
    static constexpr int lanes = 8;
    static constexpr int step_rows = 2;
    static constexpr int left_offset = 0;
    __m256i v;

    static I16Pairs zero() noexcept { return {_mm256_setzero_si256()}; }
    static I16Pairs broadcast(std::int32_t x) noexcept { return {_mm256_set1_epi32(x)}; }
    static I16Pairs load(const std::int32_t* p) noexcept {
        return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
    }
    void multiply_add(I16Pairs a, I16Pairs b) noexcept {
        v = pinned(_mm256_add_epi32(v, _mm256_madd_epi16(a.v, b.v)));
    }

    // Lane i holds byte i of each of two groups.
    static I16Pairs load_groups(const unsigned char* p, std::ptrdiff_t group_bytes) noexcept {
        const __m128i a = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)),
                      b = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + group_bytes));
        return {_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b))};
    }
    I16Pairs minus_offset() const noexcept { return *this; }
    using Places = F32::Places;
    template <class F>
    static Places places(F place) noexcept {
        return F32::places(place);
    }
    I16Pairs permuted(Places from) const noexcept { return {_mm256_permutevar8x32_epi32(v, from)}; }
    void add_to(double* p) const noexcept {
        F64{_mm256_cvtepi32_pd(_mm256_castsi256_si128(v))}.add_to(p);
        F64{_mm256_cvtepi32_pd(_mm256_extracti128_si256(v, 1))}.add_to(p + 4);
    }
    void store(std::int32_t* p) const noexcept {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
    }
    void add_to(std::int32_t* p) const noexcept {
        auto* const to = reinterpret_cast<__m256i*>(p);
        _mm256_storeu_si256(to, _mm256_add_epi32(_mm256_loadu_si256(to), v));
    }
};

// The arithmetic of exact products of bytes.
using ByteProducts = I16Pairs;

}  // namespace
}  // namespace bpls::kernels
