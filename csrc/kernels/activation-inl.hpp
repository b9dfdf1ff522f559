// The activations, shared by all levels. The formulas neither cancel nor overflow over the whole range, except for softmax's
// derivative, n(1 - n); NaN yields NaN, an infinity yields the limit. A value's bits do not depend on its place or its
// neighbours: the last values of an array, too few for a vector, are computed in a vector of their own.
#pragma once

#include <cstddef>

#include "kernels/math-inl.hpp"
#include "kernels/table.hpp"
#include "kernels/unrolled-inl.hpp"

namespace bpls::kernels {
namespace {

// 1 - margin; below 1 even if the margin is too small for the type.
template <class V>
inline V below_one(V margin) noexcept {
    const int digits = ConstantsOf<V>::mantissa + 1;
    return of<V>(1) -
           larger(margin, V::broadcast(typename V::Scalar(1) / (std::uint64_t(1) << digits)));
}

// (1 + e)² for e <= 1, with fewer roundings than the product has.
template <class V>
inline V squared_1_plus(V e) noexcept {
    return mul_add(e, of<V>(2) + e, of<V>(1));
}

// The functions of one activation. `slope` is the derivative at the z whose value is n, computed from n. Those that are not
// elementwise have functions of whole rows instead.
template <Activation>
struct Formula;

template <>
struct Formula<Activation::identity> {
    template <class V>
    static V forward(V z) noexcept {
        return z;
    }
    template <class V>
    static V derivative(V z) noexcept {
        return unless_nan(z, of<V>(1));
    }
    template <class V>
    static V slope(V n) noexcept {
        return unless_nan(n, of<V>(1));
    }
    template <class V>
    static V inverse(V n, V) noexcept {
        return n;
    }
};

template <>
struct Formula<Activation::sigmoid> {
    template <class V>
    static V forward(V z) noexcept {
        const V e = exp_(negative(z));
        return where_less(z, V::zero(), e, of<V>(1)) / (of<V>(1) + e);
    }
    template <class V>
    static V derivative(V z) noexcept {
        const V e = exp_(negative(z));
        return e / squared_1_plus(e);
    }
    template <class V>
    static V slope(V n) noexcept {
        return n * (of<V>(1) - n);
    }
    // With p the smaller of n and 1 - n, |z| = log((1 - p) / p).
    template <class V>
    static V inverse(V n, V margin) noexcept {
        n = smaller(below_one(margin), larger(margin, n));
        const V p = smaller(n, of<V>(1) - n);
        const V z = log1p_((of<V>(1) - (p + p)) / p);
        return where_less(n, of<V>(0.5), negative(z), z);
    }
};

template <>
struct Formula<Activation::tanh> {
    static constexpr int unroll = 4;

    template <class V>
    static V forward(V z) noexcept {
        return tanh_(z);
    }
    template <class V>
    static V derivative(V z) noexcept {
        const V e = exp_(negative(z + z));
        return of<V>(4) * e / squared_1_plus(e);
    }
    template <class V>
    static V slope(V n) noexcept {
        return (of<V>(1) - n) * (of<V>(1) + n);
    }
    template <class V>
    static V inverse(V n, V margin) noexcept {
        return atanh_(smaller(below_one(margin), magnitude(n)), n);
    }
};

template <>
struct Formula<Activation::relu> {
    template <class V>
    static V forward(V z) noexcept {
        return larger(V::zero(), z);
    }
    template <class V>
    static V derivative(V z) noexcept {
        return unless_nan(z, where_less(V::zero(), z, of<V>(1), V::zero()));
    }
    template <class V>
    static V slope(V n) noexcept {
        return unless_nan(n, where_less(V::zero(), n, of<V>(1), V::zero()));
    }
    template <class V>
    static V inverse(V n, V) noexcept {
        return larger(V::zero(), n);
    }
};

template <>
struct Formula<Activation::leaky_relu> {
    template <class V>
    static V forward(V z) noexcept {
        return where_less(V::zero(), z, z, z * of<V>(leaky_relu_slope));
    }
    template <class V>
    static V derivative(V z) noexcept {
        return unless_nan(z, where_less(V::zero(), z, of<V>(1), of<V>(leaky_relu_slope)));
    }
    template <class V>
    static V slope(V n) noexcept {
        return unless_nan(n, where_less(V::zero(), n, of<V>(1), of<V>(leaky_relu_slope)));
    }
    template <class V>
    static V inverse(V n, V) noexcept {
        return where_less(V::zero(), n, n, n / of<V>(leaky_relu_slope));
    }
};

template <>
struct Formula<Activation::elu> {
    template <class V>
    static V forward(V z) noexcept {
        return where_less(z, V::zero(), expm1_(z), z);
    }
    template <class V>
    static V derivative(V z) noexcept {
        return exp_(smaller(V::zero(), z));
    }
    template <class V>
    static V slope(V n) noexcept {
        return of<V>(1) + smaller(V::zero(), n);
    }
    template <class V>
    static V inverse(V n, V margin) noexcept {
        n = larger(V::zero() - below_one(margin), n);
        return where_less(n, V::zero(), log1p_(n), n);
    }
};

using Sigmoid = Formula<Activation::sigmoid>;

template <>
struct Formula<Activation::softplus> {
    template <class V>
    static V forward(V z) noexcept {
        return larger(V::zero(), z) + log1p_(exp_(negative(z)));
    }
    template <class V>
    static V derivative(V z) noexcept {
        return Sigmoid::forward(z);
    }
    template <class V>
    static V slope(V n) noexcept {
        return magnitude(expm1_(negative(n)));
    }
    // log(exp(n) - 1) = n + log(1 - exp(-n))
    template <class V>
    static V inverse(V n, V margin) noexcept {
        n = larger(margin, n);
        return n + log_(magnitude(expm1_(negative(n))));
    }
};

using Softplus = Formula<Activation::softplus>;

// softminus(z) = z - softplus(z) = -softplus(-z)
template <>
struct Formula<Activation::softminus> {
    template <class V>
    static V forward(V z) noexcept {
        return minus(Softplus::forward(minus(z)));
    }
    template <class V>
    static V derivative(V z) noexcept {
        return Sigmoid::forward(minus(z));
    }
    template <class V>
    static V slope(V n) noexcept {
        return Softplus::slope(minus(n));
    }
    template <class V>
    static V inverse(V n, V margin) noexcept {
        return minus(Softplus::inverse(minus(n), margin));
    }

 private:
    template <class V>
    static V minus(V x) noexcept {
        return V::zero() - x;
    }
};

// ---- loops over arrays

// out[i] = function(in[i], other[i])
template <class V, class F>
inline void for_each_pair(const typename V::Scalar* in, const typename V::Scalar* other,
                          typename V::Scalar* out, std::size_t count, F function) noexcept {
    const std::size_t full = count / V::lanes * V::lanes;
    for (std::size_t i = 0; i < full; i += V::lanes)
        function(V::load(in + i), V::load(other + i)).store(out + i);
    if (full < count) {
        const int rest = int(count - full);
        function(V::load_first(in + full, rest, 0), V::load_first(other + full, rest, 0))
            .store_first(out + full, rest);
    }
}

// out[i] = function(in[i]), `at_a_time` vectors at a time.
template <class V, int at_a_time, class F>
inline void for_each(const typename V::Scalar* in, typename V::Scalar* out, std::size_t count,
                     F function) noexcept {
    std::size_t i = 0;
    if constexpr (at_a_time > 1) {
        using Wide = Unrolled<V, at_a_time>;
        for (; i + Wide::lanes <= count; i += Wide::lanes)
            function(Wide::load(in + i)).store(out + i);
    }
    for (; i + V::lanes <= count; i += V::lanes) function(V::load(in + i)).store(out + i);
    if (i < count) {
        const int rest = int(count - i);
        function(V::load_first(in + i, rest, 0)).store_first(out + i, rest);
    }
}

// The margin in every lane, and at least the smallest normal number, as the logarithms require.
template <class V>
inline V margin_of(typename V::Scalar margin) noexcept {
    constexpr auto least = ConstantsOf<V>::smallest_normal;
    return V::broadcast(margin > least ? margin : least);
}

// ---- softmax, one row at a time

// out[i] = function(in[i]), and returns the sum of these: up to four are added in T, the rest in double. If the row does not
// end with a whole vector, its last values go to `last` instead of `out`; the lanes beyond them get function(fill).
template <class V, class F>
inline double map_and_sum(const typename V::Scalar* in, typename V::Scalar* out, std::size_t count,
                          typename V::Scalar fill, V& last, F function) noexcept {
    const auto put = [=](std::size_t i) noexcept {
        const V value = function(V::load(in + i));
        value.store(out + i);
        return value;
    };
    constexpr std::size_t step = V::lanes;
    const std::size_t full = count / step * step;
    double sum = 0;
    std::size_t i = 0;
    for (; i + 4 * step <= full; i += 4 * step) {
        const V a = put(i), b = put(i + step), c = put(i + 2 * step), d = put(i + 3 * step);
        sum += ((a + b) + (c + d)).total();
    }
    V rest = V::zero();
    for (; i < full; i += step) rest = rest + put(i);
    if (full < count) {
        const int few = int(count - full);
        last = function(V::load_first(in + full, few, fill)).keep_first(few);
        rest = rest + last;
    }
    return sum + rest.total();
}

// out[i] = function(out[i]), the last values taken from `last`.
template <class V, class F>
inline void finish(typename V::Scalar* out, std::size_t count, V last, F function) noexcept {
    const std::size_t full = count / V::lanes * V::lanes;
    for (std::size_t i = 0; i < full; i += V::lanes) function(V::load(out + i)).store(out + i);
    if (full < count) function(last).store_first(out + full, int(count - full));
}

// Writes exp(in - max) to out and `last`; returns the factor that makes the row's sum 1. The maximum may lose a NaN, the sum
// does not.
template <class V>
inline V softmax_numerators(const typename V::Scalar* in, typename V::Scalar* out,
                            std::size_t count, V& last) noexcept {
    using T = typename V::Scalar;
    constexpr T nothing = -ConstantsOf<V>::infinity;
    const std::size_t full = count / V::lanes * V::lanes;
    V top = V::broadcast(nothing);
    for (std::size_t i = 0; i < full; i += V::lanes) top = larger(top, V::load(in + i));
    if (full < count) top = larger(top, V::load_first(in + full, int(count - full), nothing));
    const T highest = top.highest();
    top = V::broadcast(highest);
    const double sum = map_and_sum<V>(in, out, count, highest, last,
                                      [top](V z) noexcept { return exp_(z - top); });
    return V::broadcast(T(1 / sum));
}

template <>
struct Formula<Activation::softmax> {
    template <class V>
    static void forward_row(const typename V::Scalar* in, typename V::Scalar* out,
                            std::size_t count) noexcept {
        V last = V::zero();
        const V factor = softmax_numerators(in, out, count, last);
        finish(out, count, last, [factor](V e) noexcept { return e * factor; });
    }
    template <class V>
    static void derivative_row(const typename V::Scalar* in, typename V::Scalar* out,
                               std::size_t count) noexcept {
        V last = V::zero();
        const V factor = softmax_numerators(in, out, count, last);
        finish(out, count, last, [factor](V e) noexcept {
            const V n = e * factor;
            return n * (of<V>(1) - n);
        });
    }
    // J = diag(n) - n nᵀ
    template <class V>
    static void jacobian_row(const typename V::Scalar* in, const typename V::Scalar* values,
                             typename V::Scalar* out, std::size_t count) noexcept {
        const std::size_t full = count / V::lanes * V::lanes;
        V sum = V::zero();
        for (std::size_t i = 0; i < full; i += V::lanes)
            sum.multiply_add(V::load(in + i), V::load(values + i));
        if (full < count) {
            const int rest = int(count - full);
            sum.multiply_add(V::load_first(in + full, rest, 0),
                             V::load_first(values + full, rest, 0));
        }
        const V mean = V::broadcast(typename V::Scalar(sum.total()));
        for_each_pair<V>(in, values, out, count,
                         [mean](V v, V n) noexcept { return n * (v - mean); });
    }
    template <class V>
    static void inverse_row(const typename V::Scalar* in, typename V::Scalar* out,
                            std::size_t count, typename V::Scalar margin) noexcept {
        const V clip = margin_of<V>(margin);
        V last = V::zero();
        const double sum = map_and_sum<V>(in, out, count, 1, last,
                                          [clip](V n) noexcept { return log_(larger(clip, n)); });
        const V mean = of<V>(sum / double(count));
        finish(out, count, last, [mean](V z) noexcept { return z - mean; });
    }
    // The diagonal of the Jacobian.
    template <class V>
    static V slope(V n) noexcept {
        return n * (of<V>(1) - n);
    }
};

// ---- the kernels: `count` values, which are one row if the activation is not elementwise

template <Activation activation>
constexpr bool elementwise = info_of(activation).elementwise;

// The vectors that forward and inverse take at a time.
template <Activation activation>
constexpr int unroll = 1;
template <Activation activation>
    requires(Formula<activation>::unroll > 1)
constexpr int unroll<activation> = Formula<activation>::unroll;

template <Activation activation, class V>
void forward_values(const typename V::Scalar* in, typename V::Scalar* out,
                    std::size_t count) noexcept {
    using A = Formula<activation>;
    if constexpr (elementwise<activation>)
        for_each<V, unroll<activation>>(in, out, count,
                                        [](auto z) noexcept { return A::forward(z); });
    else
        A::template forward_row<V>(in, out, count);
}

template <Activation activation, class V>
void derivative_values(const typename V::Scalar* in, typename V::Scalar* out,
                       std::size_t count) noexcept {
    using A = Formula<activation>;
    if constexpr (elementwise<activation>)
        for_each<V, 1>(in, out, count, [](V z) noexcept { return A::derivative(z); });
    else
        A::template derivative_row<V>(in, out, count);
}

template <Activation activation, class V>
void inverse_values(const typename V::Scalar* in, typename V::Scalar* out, std::size_t count,
                    typename V::Scalar margin) noexcept {
    using A = Formula<activation>;
    if constexpr (elementwise<activation>)
        for_each<V, unroll<activation>>(in, out, count, [margin](auto n) noexcept {
            return A::inverse(n, margin_of<decltype(n)>(margin));
        });
    else
        A::template inverse_row<V>(in, out, count, margin);
}

// out = J in, for the Jacobian J at the z whose activation is `values`.
template <Activation activation, class V>
void jacobian_values(const typename V::Scalar* in, const typename V::Scalar* values,
                     typename V::Scalar* out, std::size_t count) noexcept {
    using A = Formula<activation>;
    if constexpr (elementwise<activation>)
        for_each_pair<V>(in, values, out, count, [](V v, V n) noexcept { return v * A::slope(n); });
    else
        A::template jacobian_row<V>(in, values, out, count);
}

// sums[j] += Σ_i slope(values[i, j])² over contiguous rows.
template <Activation activation, class V>
void squared_slopes(const typename V::Scalar* values, std::size_t rows, std::size_t cols,
                    double* sums) noexcept {
    using T = typename V::Scalar;
    for (std::size_t j = 0; j < cols; j += V::lanes) {
        const int lanes = int(cols - j < V::lanes ? cols - j : V::lanes);
        V total = V::zero();
        for (std::size_t i = 0; i < rows; ++i) {
            const V slope =
                Formula<activation>::slope(V::load_first(values + i * cols + j, lanes, T(0)));
            total.multiply_add(slope, slope);
        }
        T of_lanes[V::lanes];
        total.store(of_lanes);
        for (int lane = 0; lane < lanes; ++lane) sums[j + std::size_t(lane)] += of_lanes[lane];
    }
}

}  // namespace
}  // namespace bpls::kernels
