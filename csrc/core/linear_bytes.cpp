// Products of bytes and int8 weights. W is packed once; rows are read in place if the level multiplies bytes, and
// widened to int16 if it does not. Elements that are zero in all rows of a tile are left out.
#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "bpls/linear.hpp"
#include "core/dispatch.hpp"
#include "core/linear_plan.hpp"
#include "core/nonzero_list.hpp"
#include "core/threads.hpp"

namespace bpls {
namespace {

constexpr std::size_t element = 4;  // bytes of a packed element: four int8 or two int16 values
constexpr std::size_t strip_rows =
    48;  // that a thread takes at a time: a multiple of every level's rows of a tile

// The elements that are not zero in all rows of a tile. A search reads as much as a product with a few columns does, so after one
// that finds too few it pauses.
using NonzeroElementList = NonzeroList<1, 64>;

// The columns of one tile.
struct Panel {
    std::size_t column;  // the first one
    std::size_t vectors;
    std::size_t begin;  // its first element among the packed ones
};

// W as tiles read it, and its scale, filled up with zeros to whole vectors.
class ByteWeights {
 public:
    ByteWeights(const kernels::Bytes& bytes, const std::int8_t* W, std::size_t depth,
                std::span<const float> scale)
        : step_rows_(static_cast<std::size_t>(bytes.step_rows)),
          lanes_(static_cast<std::size_t>(bytes.lanes)),
          depth_(depth),
          width_(scale.size()),
          padded_(round_up(width_, lanes_)),
          steps_((depth + step_rows_ - 1) / step_rows_),
          packed_(padded_ * steps_ * element),
          scale_(padded_) {
        plan();
        if (holds_bytes())
            pack<std::int8_t>(W);
        else
            pack<std::int16_t>(W);
        std::fill_n(scale_.data(), padded_, 0.0f);
        std::copy(scale.begin(), scale.end(), scale_.data());
    }

    // Whether an element is four bytes, and not two int16 values.
    bool holds_bytes() const noexcept { return step_rows_ == element; }
    // Elements of a row.
    std::size_t steps() const noexcept { return steps_; }
    const std::vector<Panel>& panels() const noexcept { return panels_; }
    const std::int32_t* elements(const Panel& panel) noexcept {
        return reinterpret_cast<const std::int32_t*>(packed_.data() + panel.begin * element);
    }
    const float* scale(const Panel& panel) noexcept { return scale_.data() + panel.column; }
    int columns(const Panel& panel) const noexcept {
        return static_cast<int>(std::min(width_ - panel.column, panel.vectors * lanes_));
    }

 private:
    void plan() {
        for (std::size_t column = 0, begin = 0; column < width_;) {
            const std::size_t left = (width_ - column + lanes_ - 1) / lanes_;
            const std::size_t vectors = std::min<std::size_t>(left, kernels::max_vectors);
            panels_.push_back({column, vectors, begin});
            column += vectors * lanes_;
            begin += vectors * lanes_ * steps_;
        }
    }

    // Packs W panel by panel, in each step the columns of the panel side by side.
    template <class E>
    void pack(const std::int8_t* W) noexcept {
        constexpr std::size_t step_rows = element / sizeof(E);
        // Copies: the compiler would read members again after every store.
        const std::size_t depth = depth_, width = width_, steps = steps_;
        for (const Panel& panel : panels_) {
            const std::size_t first = panel.column, columns = panel.vectors * lanes_;
            auto* to = reinterpret_cast<E*>(packed_.data() + panel.begin * element);
            for (std::size_t step = 0; step < steps; ++step)
                for (std::size_t c = 0; c < columns; ++c)
                    for (std::size_t r = 0; r < step_rows; ++r, ++to) {
                        const std::size_t k = step * step_rows + r, column = first + c;
                        *to = k < depth && column < width ? E(W[k * width + column]) : E(0);
                    }
        }
    }

    std::size_t step_rows_;  // rows of W in an element
    std::size_t lanes_;
    std::size_t depth_, width_, padded_;
    std::size_t steps_;
    std::vector<Panel> panels_;
    Buffer<unsigned char> packed_;
    Buffer<float> scale_;
};

// A row of bytes, each as an E, in whole elements; what is past the end is zero.
template <class E>
void widen(const unsigned char* values, std::size_t count, std::size_t steps,
           unsigned char* out) noexcept {
    auto* to = reinterpret_cast<E*>(out);
    const std::size_t room = steps * element / sizeof(E);
    for (std::size_t k = 0; k < count; ++k) to[k] = static_cast<E>(values[k]);
    std::fill(to + count, to + room, E(0));
}

// Whether the rows of A consist of aligned elements.
bool has_aligned_elements(const ConstMatrix& A) noexcept {
    return reinterpret_cast<std::uintptr_t>(A.at(0, 0)) % element == 0 &&
           A.row_stride % std::ptrdiff_t(element) == 0;
}

void check(const ConstMatrix& A) {
    if (A.dtype != DType::u8) throw std::invalid_argument("A is float; expected uint8");
    if (A.cols > 1 && A.rows > 0 && A.col_stride != 1)
        throw std::invalid_argument("A has a column stride of " + std::to_string(A.col_stride) +
                                    " bytes; expected 1");
    if (A.cols > most_byte_columns)
        throw std::invalid_argument("A has " + std::to_string(A.cols) +
                                    " columns; expected at most " +
                                    std::to_string(most_byte_columns) + ": sums might overflow");
}

}  // namespace

void linear_bytes(const ConstMatrix& A, const std::int8_t* W, std::span<const float> scale,
                  int n_threads, float* out) {
    check(A);
    const std::size_t depth = A.cols, width = scale.size(), count = A.rows;
    if (count == 0 || width == 0) return;

    const kernels::Bytes& bytes = table().bytes;
    const auto nonzero_columns = table().dense_f32.nonzero_columns;
    const auto mr = static_cast<std::size_t>(bytes.mr);
    ByteWeights weights(bytes, W, depth, scale);
    const std::size_t steps = weights.steps(), row_bytes = steps * element;

    const bool in_place = weights.holds_bytes() && depth % element == 0;
    const std::size_t copy_bytes = in_place ? 0 : strip_rows * row_bytes;
    // Zeros are searched for in whole elements.
    const bool searches = pays_to_search(depth, width) && (!in_place || has_aligned_elements(A));
    const std::ptrdiff_t stride =
        (in_place ? A.row_stride : static_cast<std::ptrdiff_t>(row_bytes)) /
        std::ptrdiff_t(element);
    const std::size_t strips = (count + strip_rows - 1) / strip_rows;
    n_threads = threads_for_work(n_threads,
                                 static_cast<double>(count) * static_cast<double>(depth * width));
    using Worker = ThreadScratch<unsigned char, NonzeroElementList>;
    auto workers = make_workers<Worker>(n_threads, strips, copy_bytes,
                                        searches ? steps + kernels::max_list_lanes : 0);

    parallel_for(workers, strips, [&](std::size_t strip, Worker& worker) noexcept {
        const std::size_t first = strip * strip_rows;
        const std::size_t in_strip = std::min(strip_rows, count - first);
        std::array<const unsigned char*, strip_rows> at;
        for (std::size_t i = 0; i < in_strip; ++i) {
            at[i] = A.at(first + i, 0);
            if (in_place) continue;
            unsigned char* to = worker.data() + i * row_bytes;
            if (weights.holds_bytes())
                widen<std::uint8_t>(at[i], depth, steps, to);
            else
                widen<std::int16_t>(at[i], depth, steps, to);
            at[i] = to;
        }
        for (std::size_t i = 0; i < in_strip; i += mr) {
            const int tile_rows = static_cast<int>(std::min(mr, in_strip - i));
            int nonzero_steps = static_cast<int>(steps);
            const int* nonzero = worker.nonzero().find(nonzero_steps, [&](int* list) noexcept {
                return nonzero_columns(reinterpret_cast<const float*>(at[i]), stride, tile_rows,
                                       static_cast<int>(steps), list);
            });
            for (const Panel& panel : weights.panels())
                bytes.tile[panel.vectors - 1](
                    at.data() + i, tile_rows, weights.elements(panel), nonzero, nonzero_steps,
                    weights.scale(panel), weights.columns(panel),
                    out + (first + i) * width + panel.column, static_cast<std::ptrdiff_t>(width));
        }
    });
}

}  // namespace bpls
