// The activations, shared by all levels. The formulas neither cancel nor overflow over the whole range, but for softmax's
// derivative, n(1 - n); NaN goes through, infinities give the limits.
#pragma once

#include <float.h>
#include <math.h>

#include <cstddef>

#include "kernels/table.hpp"

namespace bpls::kernels {
namespace {

// The C functions by overload: <cmath>'s templates could leave a weak copy compiled for this level.
inline float exp_(float x) noexcept { return expf(x); }
inline double exp_(double x) noexcept { return exp(x); }
inline float expm1_(float x) noexcept { return expm1f(x); }
inline double expm1_(double x) noexcept { return expm1(x); }
inline float log_(float x) noexcept { return logf(x); }
inline double log_(double x) noexcept { return log(x); }
inline float log1p_(float x) noexcept { return log1pf(x); }
inline double log1p_(double x) noexcept { return log1p(x); }
inline float tanh_(float x) noexcept { return tanhf(x); }
inline double tanh_(double x) noexcept { return tanh(x); }
inline float atanh_(float x) noexcept { return atanhf(x); }
inline double atanh_(double x) noexcept { return atanh(x); }
inline float abs_(float x) noexcept { return fabsf(x); }
inline double abs_(double x) noexcept { return fabs(x); }

template <class T>
inline T at_least(T x, T low) noexcept {
    return x < low ? low : x;
}
template <class T>
inline T at_most(T x, T high) noexcept {
    return x > high ? high : x;
}
// 1 - margin, and below 1 also where the margin is too small for the type.
template <class T>
inline T below_one(T margin) noexcept {
    const T spacing = sizeof(T) == sizeof(float) ? T(FLT_EPSILON / 2) : T(DBL_EPSILON / 2);
    return T(1) - at_least(margin, spacing);
}
// The value where z is a number, NaN where z is.
template <class T>
inline T unless_nan(T z, T value) noexcept {
    return z == z ? value : z;
}

struct Identity {
    template <class T>
    static T forward(T z) noexcept {
        return z;
    }
    template <class T>
    static T derivative(T z) noexcept {
        return unless_nan(z, T(1));
    }
    template <class T>
    static T inverse(T n, T) noexcept {
        return n;
    }
};

struct Sigmoid {
    template <class T>
    static T forward(T z) noexcept {
        const T e = exp_(-abs_(z));
        return (z < 0 ? e : T(1)) / (T(1) + e);
    }
    template <class T>
    static T derivative(T z) noexcept {
        const T e = exp_(-abs_(z));
        return e / ((T(1) + e) * (T(1) + e));
    }
    template <class T>
    static T inverse(T n, T margin) noexcept {
        n = at_most(at_least(n, margin), below_one(margin));
        if (n < T(0.25)) return log_(n) - log1p_(-n);
        if (n > T(0.75)) return log_(n) - log_(T(1) - n);
        return log1p_((n + n - T(1)) / (T(1) - n));
    }
};

struct Tanh {
    template <class T>
    static T forward(T z) noexcept {
        return tanh_(z);
    }
    template <class T>
    static T derivative(T z) noexcept {
        const T e = exp_(T(-2) * abs_(z));
        return T(4) * e / ((T(1) + e) * (T(1) + e));
    }
    template <class T>
    static T inverse(T n, T margin) noexcept {
        const T end = below_one(margin);
        return atanh_(at_most(at_least(n, -end), end));
    }
};

struct Relu {
    template <class T>
    static T forward(T z) noexcept {
        return at_least(z, T(0));
    }
    template <class T>
    static T derivative(T z) noexcept {
        return unless_nan(z, z > 0 ? T(1) : T(0));
    }
    template <class T>
    static T inverse(T n, T) noexcept {
        return at_least(n, T(0));
    }
};

struct LeakyRelu {
    template <class T>
    static T forward(T z) noexcept {
        return z > 0 ? z : z * T(leaky_relu_slope);
    }
    template <class T>
    static T derivative(T z) noexcept {
        return unless_nan(z, z > 0 ? T(1) : T(leaky_relu_slope));
    }
    template <class T>
    static T inverse(T n, T) noexcept {
        return n > 0 ? n : n / T(leaky_relu_slope);
    }
};

struct Elu {
    template <class T>
    static T forward(T z) noexcept {
        return z > 0 ? z : expm1_(z);
    }
    template <class T>
    static T derivative(T z) noexcept {
        return z > 0 ? T(1) : exp_(z);
    }
    template <class T>
    static T inverse(T n, T margin) noexcept {
        n = at_least(n, -below_one(margin));
        return n > 0 ? n : log1p_(n);
    }
};

struct Softplus {
    template <class T>
    static T forward(T z) noexcept {
        return at_least(z, T(0)) + log1p_(exp_(-abs_(z)));
    }
    template <class T>
    static T derivative(T z) noexcept {
        return Sigmoid::forward(z);
    }
    template <class T>
    static T inverse(T n, T margin) noexcept {
        n = at_least(n, margin);
        return n > T(1) ? n + log1p_(-exp_(-n)) : log_(expm1_(n));
    }
};

// softminus(z) = z - softplus(z) = -softplus(-z)
struct Softminus {
    template <class T>
    static T forward(T z) noexcept {
        return -Softplus::forward(-z);
    }
    template <class T>
    static T derivative(T z) noexcept {
        return Sigmoid::forward(-z);
    }
    template <class T>
    static T inverse(T n, T margin) noexcept {
        return -Softplus::inverse(-n, margin);
    }
};

template <class A, class T>
void forward_each(const T* in, T* out, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) out[i] = A::template forward<T>(in[i]);
}
template <class A, class T>
void derivative_each(const T* in, T* out, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) out[i] = A::template derivative<T>(in[i]);
}
template <class A, class T>
void inverse_each(const T* in, T* out, std::size_t count, T margin) noexcept {
    for (std::size_t i = 0; i < count; ++i) out[i] = A::template inverse<T>(in[i], margin);
}

// ---- softmax: one row at a time; sums run in double

template <class T>
void softmax_forward(const T* in, T* out, std::size_t count) noexcept {
    T top = in[0];
    for (std::size_t i = 1; i < count; ++i) top = in[i] > top ? in[i] : top;
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += out[i] = exp_(in[i] - top);
    for (std::size_t i = 0; i < count; ++i) out[i] = T(out[i] / sum);
}
template <class T>
void softmax_derivative(const T* in, T* out, std::size_t count) noexcept {
    softmax_forward(in, out, count);
    for (std::size_t i = 0; i < count; ++i) out[i] *= T(1) - out[i];
}
template <class T>
void softmax_inverse(const T* in, T* out, std::size_t count, T margin) noexcept {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += out[i] = log_(at_least(in[i], margin));
    const T mean = T(sum / double(count));
    for (std::size_t i = 0; i < count; ++i) out[i] -= mean;
}

}  // namespace
}  // namespace bpls::kernels
