// Vectors of 16 bytes without intrinsics, for every CPU. The compiler maps them to the baseline instructions.
#pragma once

#include <math.h>
#include <string.h>

#include <cstddef>
#include <cstdint>

namespace bpls::kernels {
namespace {

// The unsigned integer of the same size as a number.
template <class T>
struct BitsOf;
template <>
struct BitsOf<float> {
    using Type = std::uint32_t;
};
template <>
struct BitsOf<double> {
    using Type = std::uint64_t;
};

// Whether any byte of a vector is not zero.
inline bool any_bit(const unsigned char* p) noexcept {
    std::uint64_t halves[2];
    memcpy(halves, p, sizeof halves);
    return (halves[0] | halves[1]) != 0;
}

// ---- lanes: + - * / & | ~ << >> lane by lane; < sets all bits of a lane where it holds

#if defined(__GNUC__)
template <class T>
struct LanesOf {
    typedef T Type __attribute__((vector_size(16)));
};
template <class T>
using Lanes = typename LanesOf<T>::Type;
#else
template <class T>
struct Lanes {
    static constexpr int count = 16 / sizeof(T);
    T v[count];

    T& operator[](int i) noexcept { return v[i]; }
    T operator[](int i) const noexcept { return v[i]; }

    template <class R = T, class F>
    static Lanes<R> each(F&& value) noexcept {
        Lanes<R> r;
        for (int i = 0; i < count; ++i) r.v[i] = value(i);
        return r;
    }
    friend Lanes operator+(Lanes a, Lanes b) noexcept {
        return each([=](int i) noexcept { return T(a.v[i] + b.v[i]); });
    }
    friend Lanes operator-(Lanes a, Lanes b) noexcept {
        return each([=](int i) noexcept { return T(a.v[i] - b.v[i]); });
    }
    friend Lanes operator*(Lanes a, Lanes b) noexcept {
        return each([=](int i) noexcept { return a.v[i] * b.v[i]; });
    }
    friend Lanes operator/(Lanes a, Lanes b) noexcept {
        return each([=](int i) noexcept { return a.v[i] / b.v[i]; });
    }
    friend Lanes operator&(Lanes a, Lanes b) noexcept {
        return each([=](int i) noexcept { return T(a.v[i] & b.v[i]); });
    }
    friend Lanes operator|(Lanes a, Lanes b) noexcept {
        return each([=](int i) noexcept { return T(a.v[i] | b.v[i]); });
    }
    friend Lanes operator~(Lanes a) noexcept {
        return each([=](int i) noexcept { return T(~a.v[i]); });
    }
    friend Lanes operator<<(Lanes a, int n) noexcept {
        return each([=](int i) noexcept { return T(a.v[i] << n); });
    }
    friend Lanes operator>>(Lanes a, int n) noexcept {
        return each([=](int i) noexcept { return T(a.v[i] >> n); });
    }
    friend auto operator<(Lanes a, Lanes b) noexcept {
        using Mask = typename BitsOf<T>::Type;
        return each<Mask>([=](int i) noexcept { return a.v[i] < b.v[i] ? ~Mask(0) : Mask(0); });
    }
};
#endif

// The same 16 bytes as another type.
template <class To, class From>
inline To recast(From from) noexcept {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

// ---- vectors

template <class T>
struct Vector {
    using Scalar = T;
    using Sum = double;  // in memory
    using Bits = typename BitsOf<T>::Type;
    static constexpr int lanes = 16 / sizeof(T);
    static constexpr int step_rows = 1;  // rows of data in a lane
    Lanes<T> v;

    static Vector zero() noexcept { return broadcast(T(0)); }
    static Vector broadcast(T x) noexcept {
        Vector r;
        for (int i = 0; i < lanes; ++i) r.v[i] = x;
        return r;
    }
    static Vector load(const T* p) noexcept {
        Vector r;
        memcpy(&r.v, p, sizeof r.v);
        return r;
    }
    void store(T* p) const noexcept { memcpy(p, &v, sizeof v); }
    template <class S>
    void store(S* p) const noexcept {
        for (int i = 0; i < lanes; ++i) p[i] = S(v[i]);
    }
    // this += a * b
    void multiply_add(Vector a, Vector b) noexcept { v = v + a.v * b.v; }
    void add_to(double* p) const noexcept {
        for (int i = 0; i < lanes; ++i) p[i] += double(v[i]);
    }

    template <class S>
    static Vector load(const S* p) noexcept {
        return each([p](int i) noexcept { return T(p[i]); });
    }
    // A vector with the lanes value(0), value(1), ...
    template <class F>
    static Vector each(F value) noexcept {
        Vector r;
        for (int i = 0; i < lanes; ++i) r.v[i] = value(i);
        return r;
    }
    // Lane i of permuted(places([](int i) { return p(i); })) is lane p(i).
    struct Places {
        int lane[lanes];
    };
    template <class F>
    static Places places(F place) noexcept {
        Places r;
        for (int i = 0; i < lanes; ++i) r.lane[i] = place(i);
        return r;
    }
    Vector permuted(const Places& from) const noexcept {
        return each([&](int i) noexcept { return v[from.lane[i]]; });
    }
    // this -= a * b
    void subtract_product(Vector a, Vector b) noexcept {
        for (int i = 0; i < lanes; ++i) v[i] -= a.v[i] * b.v[i];
    }
    Vector root() const noexcept {
        return each([&](int i) noexcept { return T(sqrt(v[i])); });
    }
    // Sets a bit for every lane that is not above b's, or where one of the two is NaN.
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

    static Vector of_integers(Lanes<std::int32_t> integers) noexcept {
        Vector r;
        for (int i = 0; i < lanes; ++i) r.v[i] = T(integers[i]);
        return r;
    }

    // Loads the first `count` values, 1 to lanes, and fills the other lanes with zero or with `fill`.
    static Vector load_first(const T* p, int count) noexcept { return load_first(p, count, T(0)); }
    static Vector load_first(const T* p, int count, T fill) noexcept {
        Vector r = broadcast(fill);
        for (int i = 0; i < count; ++i) r.v[i] = p[i];
        return r;
    }
    // Stores the first `count` values, 1 to lanes - 1.
    void store_first(T* p, int count) const noexcept {
        for (int i = 0; i < count; ++i) p[i] = v[i];
    }
    // Keeps the first `count` lanes and sets the others to zero.
    Vector keep_first(int count) const noexcept {
        Vector r = *this;
        for (int i = count; i < lanes; ++i) r.v[i] = T(0);
        return r;
    }

    friend Vector operator+(Vector a, Vector b) noexcept { return {a.v + b.v}; }
    friend Vector operator-(Vector a, Vector b) noexcept { return {a.v - b.v}; }
    friend Vector operator*(Vector a, Vector b) noexcept { return {a.v * b.v}; }
    friend Vector operator/(Vector a, Vector b) noexcept { return {a.v / b.v}; }
    // a b + c and c - a b, with one rounding if the level has such an instruction.
    friend Vector mul_add(Vector a, Vector b, Vector c) noexcept { return {a.v * b.v + c.v}; }
    friend Vector neg_mul_add(Vector a, Vector b, Vector c) noexcept { return {c.v - a.v * b.v}; }

    // a < b ? x : y
    friend Vector where_less(Vector a, Vector b, Vector x, Vector y) noexcept {
        const auto mask = recast<Lanes<Bits>>(a.v < b.v);
        return of_lanes((mask & x.bits()) | (~mask & y.bits()));
    }
    // The larger and the smaller of two; b if one of them is NaN.
    friend Vector larger(Vector a, Vector b) noexcept { return where_less(b, a, a, b); }
    friend Vector smaller(Vector a, Vector b) noexcept { return where_less(a, b, a, b); }
    // x where z is a number, z where z is NaN.
    friend Vector unless_nan(Vector z, Vector x) noexcept {
        for (int i = 0; i < lanes; ++i) x.v[i] = z.v[i] == z.v[i] ? x.v[i] : z.v[i];
        return x;
    }

    // ---- on the bits of the lanes, as unsigned integers of the lane's size

    Lanes<Bits> bits() const noexcept { return recast<Lanes<Bits>>(v); }
    static Vector of_lanes(Lanes<Bits> b) noexcept { return {recast<Lanes<T>>(b)}; }
    static Vector of_bits(Bits x) noexcept {
        Lanes<Bits> b;
        for (int i = 0; i < lanes; ++i) b[i] = x;
        return of_lanes(b);
    }
    friend Vector operator&(Vector a, Vector b) noexcept { return of_lanes(a.bits() & b.bits()); }
    friend Vector operator|(Vector a, Vector b) noexcept { return of_lanes(a.bits() | b.bits()); }
    friend Vector plus_bits(Vector a, Vector b) noexcept { return of_lanes(a.bits() + b.bits()); }
    friend Vector minus_bits(Vector a, Vector b) noexcept { return of_lanes(a.bits() - b.bits()); }
    template <int count>
    Vector left_by() const noexcept {
        return of_lanes(bits() << count);
    }
    template <int count>
    Vector right_by() const noexcept {
        return of_lanes(bits() >> count);
    }

    // ---- across the lanes

    T highest() const noexcept {
        T top = v[0];
        for (int i = 1; i < lanes; ++i) top = top > v[i] ? top : v[i];
        return top;
    }
    // The sum, in double.
    double total() const noexcept {
        double sum = 0;
        for (int i = 0; i < lanes; ++i) sum += double(v[i]);
        return sum;
    }
    // Lane i of the result is the sum of the lanes of x[i].
    static Vector sums(const Vector (&x)[lanes]) noexcept {
        return each([&](int i) noexcept {
            T sum = x[i].v[0];
            for (int j = 1; j < lanes; ++j) sum += x[i].v[j];
            return sum;
        });
    }
};

using F32 = Vector<float>;
using F64 = Vector<double>;

// int32 sums; an operand holds two int16 rows in each lane.
struct I16Pairs {
    static constexpr int lanes = F32::lanes;
    static constexpr int step_rows = 2;
    Lanes<std::int32_t> v;

    static I16Pairs zero() noexcept { return broadcast(0); }
    static I16Pairs broadcast(std::int32_t x) noexcept {
        I16Pairs r;
        for (int i = 0; i < lanes; ++i) r.v[i] = x;
        return r;
    }
    static I16Pairs load(const std::int32_t* p) noexcept {
        I16Pairs r;
        for (int i = 0; i < lanes; ++i) r.v[i] = p[i];
        return r;
    }
    void multiply_add(I16Pairs a, I16Pairs b) noexcept {
        for (int i = 0; i < lanes; ++i)
            v[i] += std::int16_t(a.v[i]) * std::int16_t(b.v[i]) + (a.v[i] >> 16) * (b.v[i] >> 16);
    }
};

// The arithmetic of exact products of bytes: float32 holds the sums of a block of rows exactly.
using ByteProducts = F32;

}  // namespace
}  // namespace bpls::kernels
