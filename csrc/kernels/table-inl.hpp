// Builds the table of one level's kernels.
#pragma once

#include "kernels/activation-inl.hpp"
#include "kernels/bytes-inl.hpp"
#include "kernels/dense-inl.hpp"
#include "kernels/interleaved-inl.hpp"
#include "kernels/levels.hpp"
#include "kernels/lists-inl.hpp"
#include "kernels/narrow-bytes-inl.hpp"
#include "kernels/narrow-inl.hpp"
#include "kernels/product-inl.hpp"
#include "kernels/triangular-inl.hpp"

namespace bpls::kernels {
namespace {

// The shapes of a level's register tiles: rows by vectors.
struct Shapes {
    int f32_mr;     // of the products of float
    int f64_mr;     // of the products of double
    int nv;         // of both
    int linear_mr;  // of the forward tile
    int linear_nv;  // of the forward tile
    int batch_nv;   // of the tiles of interleaved systems, which have four rows
};

template <class V, int columns>
constexpr Dots<typename V::Scalar> dots_of() noexcept {
    if constexpr (2 * columns <= V::lanes)
        return &dots<V, columns>;
    else
        return nullptr;
}

// V: the vector type of T.
template <class V, int mr, int nv>
constexpr Dense<typename V::Scalar> dense(bool (*finite)(const typename V::Scalar*,
                                                         std::size_t) noexcept) noexcept {
    using T = typename V::Scalar;
    return {mr,
            nv,
            V::lanes,
            &linear_product<V, mr, nv>,
            {dots_of<V, 1>(), dots_of<V, 2>(), dots_of<V, 3>(), dots_of<V, 4>(), dots_of<V, 5>(),
             dots_of<V, 6>(), dots_of<V, 7>(), dots_of<V, 8>()},
            by_dtype<CopyRows<T>>([]<class S>() -> CopyRows<T> {
                if constexpr (represents<T, S>)
                    return &copy_rows<S, T>;
                else
                    return nullptr;
            }),
            by_activation([]<Activation a>() { return &forward_values<a, V>; }),
            by_activation([]<Activation a>() { return &derivative_values<a, V>; }),
            by_activation([]<Activation a>() { return &inverse_values<a, V>; }),
            by_activation([]<Activation a>() { return &jacobian_values<a, V>; }),
            by_activation([]<Activation a>() { return &squared_slopes<a, V>; }),
            finite,
            &clip<T>,
            &nonzero_columns<V>};
}

template <Shapes shapes>
constexpr Table make_table(Product u8, NarrowBytes narrow_u8, Bytes bytes) noexcept {
    return {u8,
            float_product<F32, shapes.f32_mr, shapes.nv>(),
            float_product<F64, shapes.f64_mr, shapes.nv>(),
            narrow<F32, shapes.f32_mr, shapes.nv>(),
            narrow<F64, shapes.f64_mr, shapes.nv>(),
            narrow_u8,
            dense<F32, shapes.linear_mr, shapes.linear_nv>(all_finite_f32),
            dense<F64, shapes.linear_mr, shapes.linear_nv>(all_finite_f64),
            bytes,
            triangular<F64, shapes.f64_mr, shapes.nv>(),
            interleaved<F64, shapes.batch_nv>(),
            &merge_bits};
}

}  // namespace
}  // namespace bpls::kernels
