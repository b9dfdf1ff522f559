// Packing of columns into panels: whole panels at once where a range begins with one.
#include "core/panels.hpp"

#include <algorithm>
#include <cstdint>

namespace bpls {

bool readable_in_place(const ConstMatrix& matrix) noexcept {
    const std::ptrdiff_t size = size_of(matrix.dtype);
    return matrix.col_stride == size && matrix.row_stride % size == 0 &&
           reinterpret_cast<std::uintptr_t>(matrix.data) % static_cast<std::uintptr_t>(size) == 0;
}

Prefetch prefetch_rows(const ConstMatrix& matrix, std::size_t row, std::size_t rows) noexcept {
    const auto row_bytes = static_cast<std::ptrdiff_t>(matrix.cols) * size_of(matrix.dtype);
    if (row >= matrix.rows || matrix.row_stride != row_bytes ||
        matrix.col_stride != size_of(matrix.dtype))
        return {};
    return {matrix.at(row, 0), matrix.at(std::min(row + rows, matrix.rows), 0)};
}

PanelLayout::PanelLayout(const kernels::Panels& of, int rows) noexcept
    : panels(&of), width(static_cast<std::size_t>(of.nr)) {
    const auto body = static_cast<std::size_t>(steps_of(of, rows) * of.nr * of.element);
    // An extra line keeps the panels from sharing cache sets.
    bytes = round_up(body, cache_line) + cache_line;
}

void pack_columns(const PanelLayout& layout, const Columns& columns, Range range, std::size_t row,
                  int rows, const double* weight, unsigned char* packed, std::size_t at) noexcept {
    std::size_t part_begin = 0;
    for (const ConstMatrix& part : columns) {
        const std::size_t part_end = part_begin + part.cols;
        const kernels::Pack pack = layout.panels->pack[part.dtype];
        const std::size_t end = std::min(range.end, part_end);
        for (std::size_t c = std::max(range.begin, part_begin); c < end;) {
            const std::size_t to = at + c - range.begin;
            const std::size_t lane = to % layout.width;
            // As many whole panels as there are if it begins with one; otherwise to the end of the panel.
            const std::size_t width = lane == 0 && end - c >= layout.width
                                          ? (end - c) / layout.width * layout.width
                                          : std::min(layout.width - lane, end - c);
            pack(part.at(row, c - part_begin), part.row_stride, part.col_stride, rows,
                 static_cast<int>(width), weight, packed + to / layout.width * layout.bytes,
                 static_cast<int>(lane), layout.bytes);
            c += width;
        }
        part_begin = part_end;
    }
}

}  // namespace bpls
