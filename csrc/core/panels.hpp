// Panels: rows packed as groups of a few columns, the layout in which register tiles read them.
#pragma once

#include <array>
#include <cstddef>

#include "bpls/matrix.hpp"
#include "core/buffer.hpp"
#include "kernels/table.hpp"

namespace bpls {

// The columns of up to three matrices of equal row counts, side by side.
class Columns {
 public:
    Columns& append(const ConstMatrix& matrix) noexcept {
        parts_[count_++] = matrix;
        width_ += matrix.cols;
        return *this;
    }
    std::size_t width() const noexcept { return width_; }
    const ConstMatrix* begin() const noexcept { return parts_.data(); }
    const ConstMatrix* end() const noexcept { return parts_.data() + count_; }

 private:
    std::array<ConstMatrix, 3> parts_{};
    std::size_t count_ = 0;
    std::size_t width_ = 0;
};

// Whether a kernel can read the rows as arrays of the matrix's own type: its elements are aligned and contiguous in a row.
bool readable_in_place(const ConstMatrix& matrix) noexcept;

struct Range {
    std::size_t begin;
    std::size_t end;

    std::size_t size() const noexcept { return end - begin; }
};

// The layout of packed columns.
struct PanelLayout {
    const kernels::Panels* panels;
    std::size_t width;  // columns of a panel
    std::size_t bytes;  // from one panel to the next

    // Panels of at most `rows` rows.
    PanelLayout(const kernels::Panels& of, int rows) noexcept;
    explicit PanelLayout(const kernels::Panels& of) noexcept : PanelLayout(of, of.block_rows) {}
    std::size_t count(std::size_t columns) const noexcept { return (columns + width - 1) / width; }
    std::size_t size(std::size_t columns) const noexcept { return count(columns) * bytes; }
    std::size_t padded(std::size_t columns) const noexcept { return count(columns) * width; }
    // The place of the first column of a symmetric product, a multiple of `multiple`. The first panel, which meets few tiles, is
    // left partly empty instead of the last one, which meets all.
    std::size_t first_place(std::size_t columns, std::size_t multiple) const noexcept {
        return (padded(columns) - columns) / multiple * multiple;
    }
    // The first element of column `at` of the panels.
    unsigned char* column(unsigned char* packed, std::size_t at) const noexcept {
        return packed + at / width * bytes + at % width * static_cast<std::size_t>(panels->element);
    }
};

// Packs `rows` rows (at most the panels' block_rows) of a range of columns, from `row` on, as columns `at` and following of
// the panels. Lanes past the range are not written: the caller has zeroed them.
void pack_columns(const PanelLayout& layout, const Columns& columns, Range range, std::size_t row,
                  int rows, const double* weight, unsigned char* packed,
                  std::size_t at = 0) noexcept;

// Memory that is read soon, and that tiles fetch into the cache meanwhile.
struct Prefetch {
    const unsigned char* begin = nullptr;
    const unsigned char* end = nullptr;

    // Takes the lines that a tile of `steps` steps fetches, `bytes` further in every step. Where none are left, it fetches
    // `none` again and again, which costs nothing.
    struct Lines {
        const unsigned char* first;
        std::ptrdiff_t stride;
    };
    Lines take(int steps, const void* none, std::size_t bytes) noexcept {
        const auto stride = static_cast<std::ptrdiff_t>(bytes);
        if (begin >= end) return {static_cast<const unsigned char*>(none), 0};
        // The last tile may have less left to fetch.
        const unsigned char* first = begin;
        begin = end - begin > steps * stride ? begin + steps * stride : end;
        return {first, begin < end ? stride : (end - first) / steps};
    }
};

// Some rows of a matrix, if they are contiguous; nothing otherwise.
Prefetch prefetch_rows(const ConstMatrix& matrix, std::size_t row, std::size_t rows) noexcept;

// The number of packed elements in a column of `rows` rows.
inline int steps_of(const kernels::Panels& panels, int rows) noexcept {
    return (rows + panels.step_rows - 1) / panels.step_rows;
}

}  // namespace bpls
