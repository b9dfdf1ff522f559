// The kernels of the active level for dense layers, by element type.
#pragma once

#include "core/dispatch.hpp"

namespace bpls {

template <class T>
const kernels::Dense<T>& dense_kernels() {
    if constexpr (sizeof(T) == sizeof(float))
        return table().dense_f32;
    else
        return table().dense_f64;
}

}  // namespace bpls
