// exp, expm1, log, log1p, tanh, atanh over vectors, once for all levels and for float and double. They take only the arguments
// that the activations need; each function names them. NaN yields NaN.
//
// Errors in ULP of the result, at every level (tests of the activations measure what is built on them):
//   function   arguments                float   double
//   exp        x <= 0                   1.5     1.5
//   expm1      x <= 0                   1.5     1.5
//   log        normal x > 0, infinity   1.5     1.5
//   log1p      x > -1, normal 1 + x     1.5     1.5
//   tanh       any                      3       3
//   atanh      0 <= x < 1               3       3
//
// All coefficients were computed with mpmath at 60 digits: the polynomial that interpolates at the Chebyshev nodes of its
// interval, which is within a few percent of the best one, rounded to the type. The comment of each states the largest
// remaining relative error, in units of 2^-24 (2^-53 for double).
#pragma once

#include <math.h>

#include <cstdint>

namespace bpls::kernels {
namespace {

template <class T>
struct Constants;

template <>
struct Constants<float> {
    using Bits = std::uint32_t;
    static constexpr int mantissa = 23;
    static constexpr Bits exponent_mask = 0x7f800000u;
    static constexpr Bits mantissa_mask = 0x007fffffu;
    static constexpr Bits sign_mask = 0x80000000u;
    static constexpr Bits one = 0x3f800000u;
    static constexpr Bits sqrt_half = 0x3f3504f3u;
    static constexpr float infinity = INFINITY;
    static constexpr float smallest_normal = 0x1p-126f;
    // Adding it rounds a number to an integer, which is then in the lowest bits, with the exponent's bias added.
    static constexpr float integer_shift = 0x1.8p23f + 127;
    static constexpr float log2_e = 0x1.715476p0f;
    // ln 2 in two parts; the product of the first with an exponent is exact.
    static constexpr float ln2_high = 0x1.62e8p-1f;
    static constexpr float ln2_low = -0x1.e8082ep-16f;
    static constexpr float ln2 = 0x1.62e43p-1f;
    static constexpr float exp_is_zero = -104;      // its exp rounds to 0
    static constexpr float expm1_is_minus_1 = -20;  // its expm1 rounds to -1
    // (exp(r) - 1 - r) / r² for |r| <= 0.347: 0.41 units of expm1(r).
    static constexpr float exp[] = {0x1p-1f, 0x1.5554dcp-3f, 0x1.555518p-5f, 0x1.120cp-7f,
                                    0x1.6d119ap-10f};
    // 2 (atanh(s) - s) / s³ as a polynomial in s² for |s| <= (√2 - 1) / (√2 + 1): 0.04 units of atanh(s).
    static constexpr float atanh[] = {0x1.55555cp-1f, 0x1.997c2ep-2f, 0x1.2ee69cp-2f};
    // (atanh(s) - s) / s³ as a polynomial in s² for |s| <= 0.2: 0.15 units of atanh(s).
    static constexpr float wide_atanh[] = {0x1.555566p-2f, 0x1.99625ep-3f, 0x1.32c658p-3f};
};

template <>
struct Constants<double> {
    using Bits = std::uint64_t;
    static constexpr int mantissa = 52;
    static constexpr Bits exponent_mask = 0x7ff0000000000000u;
    static constexpr Bits mantissa_mask = 0x000fffffffffffffu;
    static constexpr Bits sign_mask = 0x8000000000000000u;
    static constexpr Bits one = 0x3ff0000000000000u;
    static constexpr Bits sqrt_half = 0x3fe6a09e667f3bcdu;
    static constexpr double infinity = INFINITY;
    static constexpr double smallest_normal = 0x1p-1022;
    static constexpr double integer_shift = 0x1.8p52 + 1023;
    static constexpr double log2_e = 0x1.71547652b82fep0;
    static constexpr double ln2_high = 0x1.62e42ffp-1;
    static constexpr double ln2_low = -0x1.718432a1b0e26p-35;
    static constexpr double ln2 = 0x1.62e42fefa39efp-1;
    static constexpr double exp_is_zero = -746;
    static constexpr double expm1_is_minus_1 = -40;
    // 0.007 units
    static constexpr double exp[] = {
        0x1p-1,
        0x1.5555555555557p-3,
        0x1.5555555555556p-5,
        0x1.11111111100b6p-7,
        0x1.6c16c16c162bfp-10,
        0x1.a01a01abfc8ddp-13,
        0x1.a01a01a6e448ep-16,
        0x1.71de01f07539bp-19,
        0x1.27e4db3f36203p-22,
        0x1.af4e70dd7207dp-26,
        0x1.1f7350a074034p-29,
    };
    // 0.04 units
    static constexpr double atanh[] = {
        0x1.5555555555558p-1, 0x1.99999999952ccp-2, 0x1.2492492df3ba9p-2, 0x1.c71c62e26208bp-3,
        0x1.7462b58e46ebep-3, 0x1.39fe42e9740a7p-3, 0x1.2b59b713616c9p-3,
    };
    // 0.006 units
    static constexpr double wide_atanh[] = {
        0x1.5555555555555p-2, 0x1.9999999999f2bp-3, 0x1.24924923dc368p-3, 0x1.c71c72e23c5f3p-4,
        0x1.745cab608aa61p-4, 0x1.3b29f3c7341e4p-4, 0x1.0e899a6c903bbp-4, 0x1.16b13a54178b6p-4,
    };
};

template <class V>
using ConstantsOf = Constants<typename V::Scalar>;

template <class V>
inline V of(double x) noexcept {
    return V::broadcast(typename V::Scalar(x));
}

// Σ c[i] xⁱ
template <class V, int count>
inline V polynomial(const typename V::Scalar (&c)[count], V x) noexcept {
    V sum = V::broadcast(c[count - 1]);
#pragma GCC unroll 16
    for (int i = count - 2; i >= 0; --i) sum = mul_add(sum, x, V::broadcast(c[i]));
    return sum;
}

template <class V>
inline V magnitude(V x) noexcept {
    return x & V::of_bits(ConstantsOf<V>::sign_mask - 1);
}
// -|x|
template <class V>
inline V negative(V x) noexcept {
    return x | V::of_bits(ConstantsOf<V>::sign_mask);
}
// |x| with the sign of y.
template <class V>
inline V with_sign_of(V y, V x) noexcept {
    if constexpr (requires { V::with_sign(y, x); })
        return V::with_sign(y, x);
    else
        return magnitude(x) | (y & V::of_bits(ConstantsOf<V>::sign_mask));
}

// x = k ln 2 + r with |r| slightly above ln 2 / 2 at most. `power` is 2^(k + raised).
template <class V>
struct ExpReduced {
    V expm1_r;
    V power;
};
// With ln 2 in one part, the error of r grows with k.
template <class V, int raised, int parts>
inline ExpReduced<V> reduce_exp(V x) noexcept {
    using C = ConstantsOf<V>;
    const V shift = V::broadcast(C::integer_shift + raised);
    const V shifted = mul_add(x, V::broadcast(C::log2_e), shift);
    const V k = shifted - shift;
    V r;
    if constexpr (parts == 1) {
        r = neg_mul_add(k, V::broadcast(C::ln2), x);
    } else {
        r = neg_mul_add(k, V::broadcast(C::ln2_high), x);
        r = neg_mul_add(k, V::broadcast(C::ln2_low), r);
    }
    return {mul_add(r * r, polynomial(C::exp, r), r), shifted.template left_by<C::mantissa>()};
}

// x <= 0. Subnormal results are rounded once: the power of two is raised into the normal range and lowered in the last
// step.
template <class V>
inline V exp_(V x) noexcept {
    using C = ConstantsOf<V>;
    const auto [expm1_r, power] = reduce_exp<V, 64, 2>(larger(V::broadcast(C::exp_is_zero), x));
    return (expm1_r + of<V>(1)) * power * of<V>(0x1p-64);
}

// x <= 0. The error of r does no harm: the further k is from 0, the smaller the exponential is compared to 1.
template <class V>
inline V expm1_(V x) noexcept {
    using C = ConstantsOf<V>;
    const auto [expm1_r, power] = reduce_exp<V, 0, 1>(larger(V::broadcast(C::expm1_is_minus_1), x));
    return mul_add(expm1_r, power, power - of<V>(1));
}

// The exponent k of x = 2^k m with √½ <= m < √2, as bits with the bias added; below them, the bits of m minus those of √½.
template <class V>
inline V split_exponent(V x) noexcept {
    using C = ConstantsOf<V>;
    return plus_bits(x, V::of_bits(C::one - C::sqrt_half));
}
// The k of such bits as a number: in the lowest bits of 2^mantissa it is an integer.
template <class V>
inline V exponent_of(V split) noexcept {
    using C = ConstantsOf<V>;
    const V integer = V::of_bits(((C::one >> C::mantissa) + C::mantissa) << C::mantissa);
    const V bias = V::of_bits(C::one >> C::mantissa);
    return (split.template right_by<C::mantissa>() | integer) - (bias | integer);
}

// k ln 2 + log(1 + f) for √½ <= 1 + f < √2. With s = f / (2 + f), log(1 + f) = 2 atanh(s) = f - s (f - R(s²)), where f is
// exact and the rest small.
template <class V>
inline V log_from(V k, V f) noexcept {
    using C = ConstantsOf<V>;
    const V s = f / (of<V>(2) + f);
    const V t = s * s;
    const V rest = neg_mul_add(polynomial(C::atanh, t), t, f);
    const V low = mul_add(k, V::broadcast(C::ln2_low), f - s * rest);
    return mul_add(k, V::broadcast(C::ln2_high), low);
}

// Normal x > 0 and infinity.
template <class V>
inline V log_(V x) noexcept {
    using C = ConstantsOf<V>;
    const V split = split_exponent(x);
    const V m = plus_bits(split & V::of_bits(C::mantissa_mask), V::of_bits(C::sqrt_half));
    const V result = log_from(exponent_of(split), m - of<V>(1));
    return where_less(x, V::broadcast(C::infinity), result, x);
}

// x > -1 with 1 + x a finite normal number. 1 + x is rounded only to find k: x + (1 - 2^k) is exact where it matters.
template <class V>
inline V log1p_(V x) noexcept {
    using C = ConstantsOf<V>;
    const V split = split_exponent(x + of<V>(1));
    const V power = split & V::of_bits(C::exponent_mask);
    const V inverse_power = minus_bits(V::of_bits(2 * C::one), power);
    return log_from(exponent_of(split), (x + (of<V>(1) - power)) * inverse_power);
}

// tanh(x) = (1 - exp(-2|x|)) / (1 + exp(-2|x|)) with the sign of x. Any x.
template <class V>
inline V tanh_(V x) noexcept {
    const V e = expm1_(negative(x + x));
    return with_sign_of(x, e / (of<V>(2) + e));
}

// atanh(a) for 0 <= a < 1 with the sign of x: half the logarithm of y = (1 + a) / (1 - a) = 2^k (1 + s) / (1 - s). The
// difference of the bits of numerator and denominator is log2(y) up to an error below 0.09: good enough for k, so that
// |s| <= 0.2. s takes one division; only the last addition of its numerator is rounded.
template <class V>
inline V atanh_(V a, V x) noexcept {
    using C = ConstantsOf<V>;
    const V one = of<V>(1);
    const V more = one + a, less = one - a;
    const V half = V::of_bits(typename V::Bits(1) << (C::mantissa - 1));
    const V split = plus_bits(minus_bits(more, less), plus_bits(one, half));
    const V k = exponent_of(split);
    const V power = minus_bits(V::of_bits(2 * C::one), split & V::of_bits(C::exponent_mask));
    const V s = mul_add(a, power, a - (one - power)) / mul_add(more, power, less);
    const V t = s * s;
    const V low =
        mul_add(k, V::broadcast(C::ln2_low / 2), mul_add(s * t, polynomial(C::wide_atanh, t), s));
    return with_sign_of(x, mul_add(k, V::broadcast(C::ln2_high / 2), low));
}

}  // namespace
}  // namespace bpls::kernels
