#include "core/panels.hpp"

#include <algorithm>
#include <cstdint>

namespace bpls {
namespace {

constexpr std::size_t run_bytes = 8 * cache_line;  // of a row of the product's own type

PanelLayout panels(const kernels::Product& product, const kernels::Pack* pack, int width,
                   int header) noexcept {
    const auto body = static_cast<std::size_t>(steps_of(product, product.block_rows)) *
                      static_cast<std::size_t>(width * product.element);
    const auto columns = static_cast<std::size_t>(width);
    // Long runs let the hardware fetch ahead; a panel's odd line keeps the panels of a run out of each other's cache set.
    const std::size_t run =
        run_bytes / static_cast<std::size_t>(product.element / product.step_rows);
    return {pack, columns,
            round_up(body + static_cast<std::size_t>(header), cache_line) + cache_line,
            std::max(columns, run / columns * columns)};
}

}  // namespace

bool readable_in_place(const ConstMatrix& matrix) noexcept {
    const std::ptrdiff_t size = size_of(matrix.dtype);
    return matrix.col_stride == size && matrix.row_stride % size == 0 &&
           reinterpret_cast<std::uintptr_t>(matrix.data) % static_cast<std::uintptr_t>(size) == 0;
}

PanelLayout left_panels(const kernels::Product& product) noexcept {
    return panels(product, product.pack_left, product.mr, 0);
}

PanelLayout right_panels(const kernels::Product& product) noexcept {
    return panels(product, product.pack_right, product.nr, product.right_header);
}

void pack_columns(const PanelLayout& layout, const Columns& columns, Range range, std::size_t row,
                  int rows, const double* weight, unsigned char* panels) noexcept {
    std::size_t part_begin = 0;
    for (const ConstMatrix& part : columns) {
        const std::size_t part_end = part_begin + part.cols;
        const kernels::Pack pack = layout.pack[static_cast<int>(part.dtype)];
        for (std::size_t c = std::max(range.begin, part_begin);
             c < std::min(range.end, part_end);) {
            const std::size_t at = c - range.begin;
            const std::size_t lane = at % layout.width;
            const std::size_t left_over = std::min(part_end, range.end) - c;
            // From a panel's first lane on as many whole panels as make a run; else to the end of the panel.
            const std::size_t width =
                lane == 0 && left_over >= layout.width
                    ? std::min(layout.run, left_over / layout.width * layout.width)
                    : std::min(layout.width - lane, left_over);
            pack(part.at(row, c - part_begin), part.row_stride, part.col_stride, rows,
                 static_cast<int>(width), weight, panels + at / layout.width * layout.bytes,
                 static_cast<int>(lane), layout.bytes);
            c += width;
        }
        part_begin = part_end;
    }
}

}  // namespace bpls
