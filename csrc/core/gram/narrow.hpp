// Products of few columns, without packing: rows are read in place where they can be, and the sums stay in registers.
#pragma once

#include "core/dispatch.hpp"
#include "core/gram/direct.hpp"

namespace bpls::gram_detail {

// The kernels of the active level for rows in place, by element type.
template <class T>
const kernels::Narrow<T>& narrow_kernels() noexcept {
    if constexpr (sizeof(T) == sizeof(float))
        return table().narrow_f32;
    else
        return table().narrow_f64;
}

// Computes a product in the arithmetic of float or double whose right side has at most as many columns as a tile, or whose left
// side has at most most_thin_columns while the right side is read in place. The left side is not wider than the right one.
// The bits do not depend on the number of threads.
void multiply_narrow(const DirectProduct& task, int n_threads);

}  // namespace bpls::gram_detail
