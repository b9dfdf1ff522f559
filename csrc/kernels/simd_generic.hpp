// Vectors of 16 bytes in plain C++, for every CPU. The compiler maps them to what the baseline has.
#pragma once

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
};

using F32 = Vector<float>;
using F64 = Vector<double>;

}  // namespace
}  // namespace bpls::kernels
