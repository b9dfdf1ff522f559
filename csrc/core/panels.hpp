// Panels: blocks of rows packed column group by column group, the form in which register tiles read them.
#pragma once

#include <array>
#include <cstddef>

#include "bpls/matrix.hpp"
#include "core/buffer.hpp"
#include "kernels/table.hpp"

namespace bpls {

// The columns of one or two matrices of equal row counts, side by side.
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
    std::array<ConstMatrix, 2> parts_{};
    std::size_t count_ = 0;
    std::size_t width_ = 0;
};

// Where a kernel can read rows as arrays of the matrix's own type: aligned elements, side by side.
bool readable_in_place(const ConstMatrix& matrix) noexcept;

// How one side of a product is packed.
struct PanelLayout {
    const kernels::Pack* pack;  // by DType
    std::size_t width;          // columns of a panel
    std::size_t bytes;          // from one panel to the next
    std::size_t run;            // columns to pack at a time: a whole number of panels

    std::size_t count(std::size_t columns) const noexcept { return (columns + width - 1) / width; }
    std::size_t size(std::size_t columns) const noexcept { return count(columns) * bytes; }
    std::size_t padded(std::size_t columns) const noexcept { return count(columns) * width; }
};

PanelLayout left_panels(const kernels::Product& product) noexcept;
PanelLayout right_panels(const kernels::Product& product) noexcept;

struct Range {
    std::size_t begin;
    std::size_t end;

    std::size_t size() const noexcept { return end - begin; }
};

// Packs the columns of a range for `rows` rows (at most the product's block_rows) from `row` on. Lanes past the range are not
// written: the caller has zeroed them.
void pack_columns(const PanelLayout& layout, const Columns& columns, Range range, std::size_t row,
                  int rows, const double* weight, unsigned char* panels) noexcept;

// The number of packed elements that hold `rows` rows.
inline int steps_of(const kernels::Product& product, int rows) noexcept {
    return (rows + product.step_rows - 1) / product.step_rows;
}

}  // namespace bpls
