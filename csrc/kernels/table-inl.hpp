// Puts one level's kernels into its table.
#pragma once

#include "kernels/activation-inl.hpp"
#include "kernels/dense-inl.hpp"
#include "kernels/interleaved-inl.hpp"
#include "kernels/product-inl.hpp"
#include "kernels/triangular-inl.hpp"

namespace bpls::kernels {
namespace {

// V: the vector type of T; mr and nv as in its product, whose right panels linear_tile reads.
template <class V, int mr, int nv>
constexpr Dense<typename V::Scalar> dense(bool (*finite)(const typename V::Scalar*,
                                                         std::size_t) noexcept) noexcept {
    using T = typename V::Scalar;
    constexpr bool wide = sizeof(T) == sizeof(double);
    return {
        &linear_tile<V, mr, nv>,
        {&copy_rows<std::uint8_t, T>, &copy_rows<float, T>, wide ? &copy_rows<double, T> : nullptr},
        {&forward_each<Identity, T>, &forward_each<Sigmoid, T>, &forward_each<Tanh, T>,
         &forward_each<Relu, T>, &forward_each<LeakyRelu, T>, &forward_each<Elu, T>,
         &softmax_forward<T>, &forward_each<Softplus, T>, &forward_each<Softminus, T>},
        {&derivative_each<Identity, T>, &derivative_each<Sigmoid, T>, &derivative_each<Tanh, T>,
         &derivative_each<Relu, T>, &derivative_each<LeakyRelu, T>, &derivative_each<Elu, T>,
         &softmax_derivative<T>, &derivative_each<Softplus, T>, &derivative_each<Softminus, T>},
        {&inverse_each<Identity, T>, &inverse_each<Sigmoid, T>, &inverse_each<Tanh, T>,
         &inverse_each<Relu, T>, &inverse_each<LeakyRelu, T>, &inverse_each<Elu, T>,
         &softmax_inverse<T>, &inverse_each<Softplus, T>, &inverse_each<Softminus, T>},
        finite};
}

template <int mr, int nv>
constexpr Table make_table(Product u8) noexcept {
    return {u8,
            float_product<F32, mr, nv>(),
            float_product<F64, mr, nv>(),
            dense<F32, mr, nv>(all_finite_f32),
            dense<F64, mr, nv>(all_finite_f64),
            {&factor, &solve_lower, &solve_upper},
            interleaved<F64, nv>()};
}

}  // namespace
}  // namespace bpls::kernels
