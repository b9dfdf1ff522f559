// The element types of matrices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>

#include "bpls/bpls.h"

namespace bpls {

// The names of the types, and the types in the same order. Everything that depends on the type of a matrix follows from these
// two lists.
enum class DType { u8 = BPLS_U8, f32 = BPLS_F32, f64 = BPLS_F64 };
using ElementTypes = std::tuple<std::uint8_t, float, double>;
inline constexpr int dtype_count = std::tuple_size_v<ElementTypes>;

template <DType dtype>
using Element = std::tuple_element_t<static_cast<std::size_t>(dtype), ElementTypes>;

// The number of an element type. Other types do not compile.
template <class T, int place = 0>
constexpr DType dtype_of() noexcept {
    static_assert(place < dtype_count, "not an element type of matrices");
    if constexpr (std::is_same_v<T, Element<static_cast<DType>(place)>>)
        return static_cast<DType>(place);
    else
        return dtype_of<T, place + 1>();
}
static_assert(dtype_of<std::uint8_t>() == DType::u8 && dtype_of<float>() == DType::f32 &&
              dtype_of<double>() == DType::f64);

namespace detail {

template <template <class...> class Container, template <class> class Of, class Types>
struct EachElement;
template <template <class...> class Container, template <class> class Of, class... T>
struct EachElement<Container, Of, std::tuple<T...>> {
    using Type = Container<Of<T>...>;
};

}  // namespace detail

// Container<Of<T>...> over all element types T: for example, a variant of predictors.
template <template <class...> class Container, template <class> class Of>
using EachElement = typename detail::EachElement<Container, Of, ElementTypes>::Type;

// Whether T represents all values of S exactly.
template <class T, class S>
inline constexpr bool represents = std::numeric_limits<S>::digits <= std::numeric_limits<T>::digits;

}  // namespace bpls
