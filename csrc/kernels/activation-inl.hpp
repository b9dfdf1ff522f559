// The activations, shared by all levels. The formulas neither cancel nor overflow over the whole range, but for softmax's
// derivative, n(1 - n); NaN goes through, infinities give the limits. A value's bits do not depend on its place or its
// neighbours: the last values of an array, too few for a vector, are computed in a vector of their own. `slope` is the
// derivative at the z whose value is n, from n alone.
#pragma once

#include <cstddef>

#include "kernels/math-inl.hpp"
#include "kernels/table.hpp"
#include "kernels/unrolled-inl.hpp"

namespace bpls::kernels {
namespace {

// 1 - margin, and below 1 also where the margin is too small for the type.
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

struct Identity {
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

struct Sigmoid {
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

struct Tanh {
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

struct Relu {
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

struct LeakyRelu {
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

struct Elu {
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

struct Softplus {
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

// softminus(z) = z - softplus(z) = -softplus(-z)
struct Softminus {
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

// The vectors that an activation's functions take at a time.
template <class A>
constexpr int unroll = 1;
template <>
constexpr int unroll<Tanh> = 4;

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
template <class A, class V>
void forward_each(const typename V::Scalar* in, typename V::Scalar* out,
                  std::size_t count) noexcept {
    for_each<V, unroll<A>>(in, out, count, [](auto z) noexcept { return A::forward(z); });
}
template <class A, class V>
void derivative_each(const typename V::Scalar* in, typename V::Scalar* out,
                     std::size_t count) noexcept {
    for_each<V, 1>(in, out, count, [](V z) noexcept { return A::derivative(z); });
}

// J in, where the activation has these values.
template <class A, class V>
void jacobian_each(const typename V::Scalar* in, const typename V::Scalar* values,
                   typename V::Scalar* out, std::size_t count) noexcept {
    for_each_pair<V>(in, values, out, count, [](V v, V n) noexcept { return v * A::slope(n); });
}

// sums[j] += Σ_i slope(values[i, j])² over rows that follow one another.
template <class A, class V>
void squared_slopes(const typename V::Scalar* values, std::size_t rows, std::size_t cols,
                    double* sums) noexcept {
    using T = typename V::Scalar;
    for (std::size_t j = 0; j < cols; j += V::lanes) {
        const int lanes = int(cols - j < V::lanes ? cols - j : V::lanes);
        V total = V::zero();
        for (std::size_t i = 0; i < rows; ++i) {
            const V slope = A::slope(V::load_first(values + i * cols + j, lanes, T(0)));
            total.multiply_add(slope, slope);
        }
        T of_lanes[V::lanes];
        total.store(of_lanes);
        for (int lane = 0; lane < lanes; ++lane) sums[j + std::size_t(lane)] += of_lanes[lane];
    }
}

// The margin in every lane; at least the smallest normal number, as the logarithms expect.
template <class V>
inline V margin_of(typename V::Scalar margin) noexcept {
    constexpr auto least = ConstantsOf<V>::smallest_normal;
    return V::broadcast(margin > least ? margin : least);
}
template <class A, class V>
void inverse_each(const typename V::Scalar* in, typename V::Scalar* out, std::size_t count,
                  typename V::Scalar margin) noexcept {
    for_each<V, unroll<A>>(in, out, count, [margin](auto n) noexcept {
        return A::inverse(n, margin_of<decltype(n)>(margin));
    });
}

// ---- softmax, one row at a time

// Of its Jacobian the diagonal alone.
struct SoftmaxDiagonal {
    template <class V>
    static V slope(V n) noexcept {
        return n * (of<V>(1) - n);
    }
};

// out[i] = function(in[i]), and the sum of these: up to four are added in T, the rest in double. Where the row is not a
// number of whole vectors, its last values stay in `last` and are not stored; `fill` is what the function is given in
// the lanes beyond them.
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

// exp(in - max) into out and `last`; gives the factor that makes the row's sum 1. A NaN may be lost on the way to the
// largest value, but not on the way to the sum.
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

template <class V>
void softmax_forward(const typename V::Scalar* in, typename V::Scalar* out,
                     std::size_t count) noexcept {
    V last = V::zero();
    const V factor = softmax_numerators(in, out, count, last);
    finish(out, count, last, [factor](V e) noexcept { return e * factor; });
}
template <class V>
void softmax_derivative(const typename V::Scalar* in, typename V::Scalar* out,
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
void softmax_jacobian(const typename V::Scalar* in, const typename V::Scalar* values,
                      typename V::Scalar* out, std::size_t count) noexcept {
    const std::size_t full = count / V::lanes * V::lanes;
    V sum = V::zero();
    for (std::size_t i = 0; i < full; i += V::lanes)
        sum.multiply_add(V::load(in + i), V::load(values + i));
    if (full < count) {
        const int rest = int(count - full);
        sum.multiply_add(V::load_first(in + full, rest, 0), V::load_first(values + full, rest, 0));
    }
    const V mean = V::broadcast(typename V::Scalar(sum.total()));
    for_each_pair<V>(in, values, out, count, [mean](V v, V n) noexcept { return n * (v - mean); });
}
template <class V>
void softmax_inverse(const typename V::Scalar* in, typename V::Scalar* out, std::size_t count,
                     typename V::Scalar margin) noexcept {
    const V clip = margin_of<V>(margin);
    V last = V::zero();
    const double sum = map_and_sum<V>(in, out, count, 1, last,
                                      [clip](V n) noexcept { return log_(larger(clip, n)); });
    const V mean = of<V>(sum / double(count));
    finish(out, count, last, [mean](V z) noexcept { return z - mean; });
}

}  // namespace
}  // namespace bpls::kernels
