// Finds NaN and infinity in matrices.
#pragma once

#include <cstddef>
#include <optional>

#include "bpls/matrix.hpp"

namespace bpls {

struct Place {
    std::size_t row;
    std::size_t col;
    bool nan;  // otherwise infinity
};

// Returns the first NaN or infinity in row-major order, if there is one.
std::optional<Place> first_nonfinite(const ConstMatrix& matrix, int n_threads = 0);

}  // namespace bpls
