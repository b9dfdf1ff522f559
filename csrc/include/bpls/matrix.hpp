// Views of matrices that somebody else owns. A view carries its element type and byte strides, so every layout NumPy
// or Eigen can describe (row major, column major, sliced, reversed, unaligned) goes into a kernel without a copy.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bpls {

enum class DType { u8, f32, f64 };

template <class T>
constexpr DType dtype_of() noexcept = delete;  // other types are not taken
template <>
constexpr DType dtype_of<std::uint8_t>() noexcept {
    return DType::u8;
}
template <>
constexpr DType dtype_of<float>() noexcept {
    return DType::f32;
}
template <>
constexpr DType dtype_of<double>() noexcept {
    return DType::f64;
}

constexpr std::ptrdiff_t size_of(DType dtype) noexcept {
    return dtype == DType::u8 ? 1 : dtype == DType::f32 ? 4 : 8;
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

// A row-major matrix of T (std::uint8_t, float or double) whose rows lie `stride` elements apart.
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
