// Views of matrices that the caller owns. A view carries its element type and byte strides, so every layout that NumPy or
// Eigen can describe (row major, column major, sliced, reversed, unaligned) goes into a kernel without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "bpls/dtype.hpp"

namespace bpls {

// Calls function.operator()<T>() for the element type T of this number. Throws std::invalid_argument for any other number.
template <class F, int place = 0>
constexpr decltype(auto) visit_dtype(DType dtype, F&& function) {
    constexpr auto here = static_cast<DType>(place);
    if constexpr (place + 1 < dtype_count) {
        if (dtype != here) return visit_dtype<F, place + 1>(dtype, static_cast<F&&>(function));
    } else {
        if (dtype != here) throw std::invalid_argument("a matrix has an unknown dtype");
    }
    return function.template operator()<Element<here>>();
}

constexpr std::ptrdiff_t size_of(DType dtype) {
    return visit_dtype(dtype, []<class T>() { return static_cast<std::ptrdiff_t>(sizeof(T)); });
}

constexpr bool is_float(DType dtype) {
    return visit_dtype(dtype, []<class T>() { return std::is_floating_point_v<T>; });
}

// Whether float represents all values of the type: then its products run in float.
constexpr bool fits_float(DType dtype) {
    return visit_dtype(dtype, []<class S>() { return represents<float, S>; });
}

// A read-only matrix. Strides are in bytes and may be negative, zero or not a multiple of the element size.
struct ConstMatrix {
    const unsigned char* data = nullptr;
    DType dtype = DType::f64;
    std::size_t rows = 0;
    std::size_t cols = 0;
    std::ptrdiff_t row_stride = 0;
    std::ptrdiff_t col_stride = 0;

    const unsigned char* at(std::size_t row, std::size_t col) const noexcept {
        return data + static_cast<std::ptrdiff_t>(row) * row_stride +
               static_cast<std::ptrdiff_t>(col) * col_stride;
    }
};

// The value at a place, which need not be aligned, as a double.
inline double value_at(const ConstMatrix& matrix, std::size_t row, std::size_t col) {
    return visit_dtype(matrix.dtype, [&]<class T>() {
        T value;
        std::memcpy(&value, matrix.at(row, col), sizeof value);
        return static_cast<double>(value);
    });
}

// A row-major matrix of T, an element type, whose rows lie `stride` elements apart.
template <class T>
ConstMatrix row_major(const T* data, std::size_t rows, std::size_t cols,
                      std::size_t stride) noexcept {
    return {reinterpret_cast<const unsigned char*>(data),
            dtype_of<T>(),
            rows,
            cols,
            static_cast<std::ptrdiff_t>(stride * sizeof(T)),
            static_cast<std::ptrdiff_t>(sizeof(T))};
}

template <class T>
ConstMatrix row_major(const T* data, std::size_t rows, std::size_t cols) noexcept {
    return row_major(data, rows, cols, cols);
}

}  // namespace bpls
