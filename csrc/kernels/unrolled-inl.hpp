// Several vectors as one wide vector, for the functions of math-inl.hpp: their long chains of dependent operations then
// overlap.
#pragma once

#include "kernels/math-inl.hpp"

namespace bpls::kernels {
namespace {

template <class V, int count>
struct Unrolled {
    using Scalar = typename V::Scalar;
    using Bits = typename V::Bits;
    static constexpr int lanes = count * V::lanes;
    V part[count];

    // The parts function(0), function(1), ...
    template <class F>
    static Unrolled each(F function) noexcept {
        Unrolled all;
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i) all.part[i] = function(i);
        return all;
    }

    static Unrolled broadcast(Scalar x) noexcept {
        return each([=](int) noexcept { return V::broadcast(x); });
    }
    static Unrolled of_bits(Bits bits) noexcept {
        return each([=](int) noexcept { return V::of_bits(bits); });
    }
    static Unrolled load(const Scalar* p) noexcept {
        return each([=](int i) noexcept { return V::load(p + i * V::lanes); });
    }
    void store(Scalar* p) const noexcept {
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i) part[i].store(p + i * V::lanes);
    }

    friend Unrolled operator+(const Unrolled& a, const Unrolled& b) noexcept {
        return each([&](int i) noexcept { return a.part[i] + b.part[i]; });
    }
    friend Unrolled operator-(const Unrolled& a, const Unrolled& b) noexcept {
        return each([&](int i) noexcept { return a.part[i] - b.part[i]; });
    }
    friend Unrolled operator*(const Unrolled& a, const Unrolled& b) noexcept {
        return each([&](int i) noexcept { return a.part[i] * b.part[i]; });
    }
    friend Unrolled operator/(const Unrolled& a, const Unrolled& b) noexcept {
        return each([&](int i) noexcept { return a.part[i] / b.part[i]; });
    }
    friend Unrolled operator&(const Unrolled& a, const Unrolled& b) noexcept {
        return each([&](int i) noexcept { return a.part[i] & b.part[i]; });
    }
    friend Unrolled operator|(const Unrolled& a, const Unrolled& b) noexcept {
        return each([&](int i) noexcept { return a.part[i] | b.part[i]; });
    }
    friend Unrolled mul_add(const Unrolled& a, const Unrolled& b, const Unrolled& c) noexcept {
        return each([&](int i) noexcept { return mul_add(a.part[i], b.part[i], c.part[i]); });
    }
    friend Unrolled neg_mul_add(const Unrolled& a, const Unrolled& b, const Unrolled& c) noexcept {
        return each([&](int i) noexcept { return neg_mul_add(a.part[i], b.part[i], c.part[i]); });
    }
    friend Unrolled larger(const Unrolled& a, const Unrolled& b) noexcept {
        return each([&](int i) noexcept { return larger(a.part[i], b.part[i]); });
    }
    friend Unrolled smaller(const Unrolled& a, const Unrolled& b) noexcept {
        return each([&](int i) noexcept { return smaller(a.part[i], b.part[i]); });
    }
    friend Unrolled plus_bits(const Unrolled& a, const Unrolled& b) noexcept {
        return each([&](int i) noexcept { return plus_bits(a.part[i], b.part[i]); });
    }
    friend Unrolled minus_bits(const Unrolled& a, const Unrolled& b) noexcept {
        return each([&](int i) noexcept { return minus_bits(a.part[i], b.part[i]); });
    }
    static Unrolled with_sign(const Unrolled& y, const Unrolled& x) noexcept {
        return each([&](int i) noexcept { return with_sign_of(y.part[i], x.part[i]); });
    }
    template <int bits>
    Unrolled left_by() const noexcept {
        return each([&](int i) noexcept { return part[i].template left_by<bits>(); });
    }
    template <int bits>
    Unrolled right_by() const noexcept {
        return each([&](int i) noexcept { return part[i].template right_by<bits>(); });
    }
};

}  // namespace
}  // namespace bpls::kernels
