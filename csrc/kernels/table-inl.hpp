// Puts one level's kernels into its table.
#pragma once

#include "kernels/activation-inl.hpp"
#include "kernels/bytes-inl.hpp"
#include "kernels/dense-inl.hpp"
#include "kernels/interleaved-inl.hpp"
#include "kernels/product-inl.hpp"
#include "kernels/triangular-inl.hpp"

namespace bpls::kernels {
namespace {

// The shapes of a level's register tiles: rows by vectors.
struct Shapes {
    int f32_mr;     // of the products of float
    int f64_mr;     // and of double
    int nv;         // of both
    int linear_mr;  // of the forward tile
    int linear_nv;  // of the forward tile
    int batch_nv;   // of the tiles of interleaved systems, which have four rows
};

// V: the vector type of T.
template <class V, int mr, int nv>
constexpr Dense<typename V::Scalar> dense(bool (*finite)(const typename V::Scalar*,
                                                         std::size_t) noexcept) noexcept {
    using T = typename V::Scalar;
    constexpr bool wide = sizeof(T) == sizeof(double);
    return {
        float_panels<T, nv * V::lanes>(depth_rows),
        mr,
        V::lanes,
        &linear_tile<V, mr, nv>,
        {&copy_rows<std::uint8_t, T>, &copy_rows<float, T>, wide ? &copy_rows<double, T> : nullptr},
        {&forward_each<Identity, V>, &forward_each<Sigmoid, V>, &forward_each<Tanh, V>,
         &forward_each<Relu, V>, &forward_each<LeakyRelu, V>, &forward_each<Elu, V>,
         &softmax_forward<V>, &forward_each<Softplus, V>, &forward_each<Softminus, V>},
        {&derivative_each<Identity, V>, &derivative_each<Sigmoid, V>, &derivative_each<Tanh, V>,
         &derivative_each<Relu, V>, &derivative_each<LeakyRelu, V>, &derivative_each<Elu, V>,
         &softmax_derivative<V>, &derivative_each<Softplus, V>, &derivative_each<Softminus, V>},
        {&inverse_each<Identity, V>, &inverse_each<Sigmoid, V>, &inverse_each<Tanh, V>,
         &inverse_each<Relu, V>, &inverse_each<LeakyRelu, V>, &inverse_each<Elu, V>,
         &softmax_inverse<V>, &inverse_each<Softplus, V>, &inverse_each<Softminus, V>},
        {&jacobian_each<Identity, V>, &jacobian_each<Sigmoid, V>, &jacobian_each<Tanh, V>,
         &jacobian_each<Relu, V>, &jacobian_each<LeakyRelu, V>, &jacobian_each<Elu, V>,
         &softmax_jacobian<V>, &jacobian_each<Softplus, V>, &jacobian_each<Softminus, V>},
        {&squared_slopes<Identity, V>, &squared_slopes<Sigmoid, V>, &squared_slopes<Tanh, V>,
         &squared_slopes<Relu, V>, &squared_slopes<LeakyRelu, V>, &squared_slopes<Elu, V>,
         &squared_slopes<SoftmaxDiagonal, V>, &squared_slopes<Softplus, V>,
         &squared_slopes<Softminus, V>},
        finite,
        &nonzero_columns<V>};
}

template <Shapes shapes>
constexpr Table make_table(Product u8, Bytes bytes) noexcept {
    return {u8,
            float_product<F32, shapes.f32_mr, shapes.nv>(),
            float_product<F64, shapes.f64_mr, shapes.nv>(),
            dense<F32, shapes.linear_mr, shapes.linear_nv>(all_finite_f32),
            dense<F64, shapes.linear_mr, shapes.linear_nv>(all_finite_f64),
            bytes,
            triangular<F64, shapes.f64_mr, shapes.nv>(),
            interleaved<F64, shapes.batch_nv>(),
            &merge_bits,
            &read_all<F32>};
}

}  // namespace
}  // namespace bpls::kernels
