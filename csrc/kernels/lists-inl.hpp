// Builds the entries of a table that has one for every element type or for every activation.
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

#include "kernels/table.hpp"

namespace bpls::kernels {
namespace {

// The entry of an element type S is make<S>().
template <class F, class Make>
constexpr ByDType<F> by_dtype(Make make) noexcept {
    return [make]<std::size_t... i>(std::index_sequence<i...>) -> ByDType<F> {
        return {{make.template operator()<std::tuple_element_t<i, ElementTypes>>()...}};
    }(std::make_index_sequence<dtype_count>());
}

// The entry of an activation is make<activation>().
template <class Make>
constexpr auto by_activation(Make make) noexcept {
    using F = decltype(make.template operator()<Activation(0)>());
    return [make]<int... i>(std::integer_sequence<int, i...>) -> ByActivation<F> {
        return {{make.template operator()<Activation(i)>()...}};
    }(std::make_integer_sequence<int, activation_count>());
}

}  // namespace
}  // namespace bpls::kernels
