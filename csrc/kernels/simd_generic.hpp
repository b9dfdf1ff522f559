// Vectors of 16 bytes in plain C++, for every CPU. The compiler maps them to what the baseline has.
#pragma once

#include <math.h>

#include <cstddef>

namespace bpls::kernels {
namespace {

template <class T>
struct Vector {
    using Scalar = T;
    static constexpr int lanes = 16 / sizeof(T);
    T v[lanes];

    static Vector zero() noexcept { return broadcast(T(0)); }
    static Vector broadcast(T x) noexcept {
        Vector r;
        for (int i = 0; i < lanes; ++i) r.v[i] = x;
        return r;
    }
    static Vector load(const T* p) noexcept {
        Vector r;
        for (int i = 0; i < lanes; ++i) r.v[i] = p[i];
        return r;
    }
    void store(T* p) const noexcept {
        for (int i = 0; i < lanes; ++i) p[i] = v[i];
    }
    // this += a * b
    void multiply_add(Vector a, Vector b) noexcept {
        for (int i = 0; i < lanes; ++i) v[i] += a.v[i] * b.v[i];
    }
    void add_to(double* p) const noexcept {
        for (int i = 0; i < lanes; ++i) p[i] += double(v[i]);
    }

    template <class S>
    static Vector load(const S* p) noexcept {
        return each([p](int i) noexcept { return T(p[i]); });
    }
    // The lanes value(0), value(1), ...
    template <class F>
    static Vector each(F value) noexcept {
        Vector r;
        for (int i = 0; i < lanes; ++i) r.v[i] = value(i);
        return r;
    }
    // this -= a * b
    void subtract_product(Vector a, Vector b) noexcept {
        for (int i = 0; i < lanes; ++i) v[i] -= a.v[i] * b.v[i];
    }
    Vector operator+(Vector b) const noexcept {
        return each([&](int i) noexcept { return v[i] + b.v[i]; });
    }
    Vector operator-(Vector b) const noexcept {
        return each([&](int i) noexcept { return v[i] - b.v[i]; });
    }
    Vector operator*(Vector b) const noexcept {
        return each([&](int i) noexcept { return v[i] * b.v[i]; });
    }
    Vector operator/(Vector b) const noexcept {
        return each([&](int i) noexcept { return v[i] / b.v[i]; });
    }
    Vector root() const noexcept {
        return each([&](int i) noexcept { return T(sqrt(v[i])); });
    }
    Vector magnitude() const noexcept {
        return each([&](int i) noexcept { return v[i] < 0 ? -v[i] : v[i]; });
    }
    // The larger of this and b, or b where one is NaN.
    Vector or_larger(Vector b) const noexcept {
        return each([&](int i) noexcept { return v[i] > b.v[i] ? v[i] : b.v[i]; });
    }
    // A bit for every lane that is not above b's, or where one is NaN.
    unsigned not_above(Vector b) const noexcept {
        unsigned bits = 0;
        for (int i = 0; i < lanes; ++i) bits |= unsigned(!(v[i] > b.v[i])) << i;
        return bits;
    }
    static void transpose(Vector (&x)[lanes]) noexcept {
        for (int i = 0; i < lanes; ++i)
            for (int j = 0; j < i; ++j) {
                const T swapped = x[i].v[j];
                x[i].v[j] = x[j].v[i];
                x[j].v[i] = swapped;
            }
    }
};

using F32 = Vector<float>;
using F64 = Vector<double>;

}  // namespace
}  // namespace bpls::kernels
