// Products of bytes and int8 weights. W is packed once; rows are read where they lie if the level multiplies bytes, and
// widened to int16 if it does not. Elements that are zero all over a tile are left out.
#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "bpls/linear.hpp"
#include "core/buffer.hpp"
#include "core/dispatch.hpp"
#include "core/strip.hpp"
#include "core/threads.hpp"

namespace bpls {
namespace {

constexpr std::size_t element = 4;  // bytes of a packed element

// The columns of one tile.
struct Panel {
    std::size_t column;  // the first one
    std::size_t vectors;
    std::size_t begin;  // its first element among the packed ones
};

std::vector<Panel> plan(const kernels::Bytes& bytes, std::size_t columns, std::size_t steps) {
    const auto lanes = static_cast<std::size_t>(bytes.lanes);
    std::vector<Panel> panels;
    for (std::size_t column = 0, begin = 0; column < columns;) {
        const std::size_t left = (columns - column + lanes - 1) / lanes;
        const std::size_t vectors = std::min<std::size_t>(left, kernels::max_vectors);
        panels.push_back({column, vectors, begin});
        column += vectors * lanes;
        begin += vectors * lanes * steps;
    }
    return panels;
}

// A row of bytes, each as an E, in whole elements; what is past the end is zero.
template <class E>
void widen(const unsigned char* values, std::size_t count, std::size_t steps,
           unsigned char* out) noexcept {
    auto* to = reinterpret_cast<E*>(out);
    const std::size_t room = steps * element / sizeof(E);
    for (std::size_t k = 0; k < count; ++k) to[k] = static_cast<E>(values[k]);
    std::fill(to + count, to + room, E(0));
}

// Packs W by panels: of every step the columns of a panel side by side.
template <class E>
void pack(const std::int8_t* W, std::size_t depth, std::size_t width, std::size_t lanes,
          std::size_t steps, const std::vector<Panel>& panels, unsigned char* out) noexcept {
    constexpr std::size_t step_rows = element / sizeof(E);
    for (const Panel& panel : panels) {
        const std::size_t columns = panel.vectors * lanes;
        auto* to = reinterpret_cast<E*>(out + panel.begin * element);
        for (std::size_t step = 0; step < steps; ++step)
            for (std::size_t c = 0; c < columns; ++c)
                for (std::size_t r = 0; r < step_rows; ++r, ++to) {
                    const std::size_t k = step * step_rows + r, column = panel.column + c;
                    *to = k < depth && column < width ? E(W[k * width + column]) : E(0);
                }
    }
}

}  // namespace

void linear_bytes(const ConstMatrix& A, const std::int8_t* W, std::span<const float> scale,
                  int n_threads, float* out) {
    if (A.dtype != DType::u8 || (A.cols > 1 && A.rows > 0 && A.col_stride != 1))
        throw std::invalid_argument("A is not of bytes that lie side by side in a row");
    if (A.cols > most_byte_columns)
        throw std::invalid_argument("A has " + std::to_string(A.cols) + " columns; at most " +
                                    std::to_string(most_byte_columns) + " can be summed");
    const std::size_t depth = A.cols, width = scale.size(), count = A.rows;
    if (count == 0 || width == 0) return;

    const kernels::Bytes& bytes = table().bytes;
    const auto nonzero_columns = table().dense_f32.nonzero_columns;
    const auto lanes = static_cast<std::size_t>(bytes.lanes),
               mr = static_cast<std::size_t>(bytes.mr);
    const auto step_rows = static_cast<std::size_t>(bytes.step_rows);
    const std::size_t steps = (depth + step_rows - 1) / step_rows;
    const std::vector<Panel> panels = plan(bytes, width, steps);
    const std::size_t padded = round_up(width, lanes);
    Buffer<unsigned char> packed(padded * steps * element);
    if (step_rows == 4)
        pack<std::int8_t>(W, depth, width, lanes, steps, panels, packed.data());
    else
        pack<std::int16_t>(W, depth, width, lanes, steps, panels, packed.data());
    Buffer<float> scales(padded);
    std::fill_n(scales.data(), padded, 0.0f);
    std::copy(scale.begin(), scale.end(), scales.data());

    const bool in_place = step_rows == 4 && depth % step_rows == 0;
    const std::size_t strips = (count + strip_rows - 1) / strip_rows;
    n_threads = threads_for_call(n_threads);
    if (static_cast<double>(count) * static_cast<double>(depth * width) < parallel_threshold)
        n_threads = 1;
    n_threads =
        static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(n_threads), strips));
    const std::size_t row_bytes = steps * element;
    const std::size_t copy_bytes = in_place ? 0 : round_up(strip_rows * row_bytes, cache_line);
    Buffer<unsigned char> copies(static_cast<std::size_t>(n_threads) * copy_bytes);
    // Zeros are looked for in whole elements.
    const auto* first_row = A.at(0, 0);
    const bool looks = pays_to_look(depth, width) &&
                       (!in_place || (reinterpret_cast<std::uintptr_t>(first_row) % element == 0 &&
                                      A.row_stride % std::ptrdiff_t(element) == 0));
    const std::ptrdiff_t stride =
        (in_place ? A.row_stride : static_cast<std::ptrdiff_t>(row_bytes)) /
        std::ptrdiff_t(element);
    const std::size_t list_room = steps + kernels::max_list_lanes;
    Buffer<int> lists(looks ? static_cast<std::size_t>(n_threads) * list_room : 0);
    std::vector<NonzeroColumns> nonzero_elements(static_cast<std::size_t>(n_threads));
    if (looks)
        for (std::size_t thread = 0; thread < nonzero_elements.size(); ++thread)
            nonzero_elements[thread].list = lists.data() + thread * list_room;

    parallel_for(n_threads, strips, [&](std::size_t strip, int thread) noexcept {
        const std::size_t first = strip * strip_rows;
        const std::size_t in_strip = std::min(strip_rows, count - first);
        unsigned char* copy = copies.data() + static_cast<std::size_t>(thread) * copy_bytes;
        std::array<const unsigned char*, strip_rows> at;
        for (std::size_t i = 0; i < in_strip; ++i) {
            at[i] = A.at(first + i, 0);
            if (in_place) continue;
            unsigned char* to = copy + i * row_bytes;
            if (step_rows == 4)
                widen<std::uint8_t>(at[i], depth, steps, to);
            else
                widen<std::int16_t>(at[i], depth, steps, to);
            at[i] = to;
        }
        for (std::size_t i = 0; i < in_strip; i += mr) {
            const int tile_rows = static_cast<int>(std::min(mr, in_strip - i));
            int nonzero_steps = static_cast<int>(steps);
            const int* nonzero = nonzero_elements[static_cast<std::size_t>(thread)].of_tile(
                nonzero_steps, [&](int* list) noexcept {
                    return nonzero_columns(reinterpret_cast<const float*>(at[i]), stride, tile_rows,
                                           static_cast<int>(steps), list);
                });
            for (const Panel& panel : panels)
                bytes.tile[panel.vectors - 1](
                    at.data() + i, tile_rows,
                    reinterpret_cast<const std::int32_t*>(packed.data() + panel.begin * element),
                    nonzero, nonzero_steps, scales.data() + panel.column,
                    static_cast<int>(std::min(width - panel.column, panel.vectors * lanes)),
                    out + (first + i) * width + panel.column, static_cast<std::ptrdiff_t>(width));
        }
    });
}

}  // namespace bpls
