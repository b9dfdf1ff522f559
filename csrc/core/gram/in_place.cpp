// An item of work is a strip of the left side's columns, some panels of the right side's columns and some of the rows. Items of
// the first rows write to the result; the others to results of their own, which are added in order.
#include "core/gram/in_place.hpp"

#include <algorithm>
#include <bit>

#include "core/gram/choose.hpp"
#include "core/gram/narrow.hpp"
#include "core/threads.hpp"

namespace bpls::gram_detail {
namespace {

// Rows that the tiles of a strip read at a time: those of a panel stay in the first cache.
constexpr std::size_t tile_rows = 96;
// The most columns of a strip.
constexpr std::size_t strip_columns = 64;
// Items that give several threads enough to share, and the fewest rows of one that is not of all rows.
constexpr std::size_t enough_items = 16;
constexpr std::size_t fewest_item_rows = 2 * tile_rows;

// A matrix that is read as an array.
template <class T>
struct InPlaceRows {
    const T* data;
    std::ptrdiff_t stride;
    std::size_t columns;

    explicit InPlaceRows(const Columns& side) noexcept
        : data(reinterpret_cast<const T*>(side.begin()->at(0, 0))),
          stride(side.begin()->row_stride / static_cast<std::ptrdiff_t>(sizeof(T))),
          columns(side.width()) {}

    const T* at(std::size_t row, std::size_t column) const noexcept {
        return data + static_cast<std::ptrdiff_t>(row) * stride + column;
    }
};

template <class T>
class InPlacePass {
 public:
    explicit InPlacePass(const DirectProduct& task)
        : task_(task),
          kernels_(narrow_kernels<T>()),
          lanes_(static_cast<std::size_t>(kernels_.lanes)),
          mr_(static_cast<std::size_t>(kernels_.mr)),
          width_(static_cast<std::size_t>(kernels_.nv) * lanes_),
          swapped_(puts_wider_side_left(shape_of(task), task.transposed, mr_ / 2, lanes_)),
          transposed_(task.transposed != swapped_),
          left_(swapped_ ? task.right : task.left),
          right_(swapped_ ? task.left : task.right),
          strips_((left_.columns + strip_columns - 1) / strip_columns),
          panels_((right_.columns + width_ - 1) / width_),
          row_items_(std::bit_floor(std::clamp<std::size_t>(
              task.rows / fewest_item_rows, 1,
              std::max<std::size_t>(1, enough_items / (strips_ * panels_))))),
          item_rows_(std::max<std::size_t>(1, (task.rows + row_items_ - 1) / row_items_)),
          results_(left_.columns * right_.columns),
          buffer_((row_items_ - 1) * results_) {}

    void run(int n_threads) {
        const double products = static_cast<double>(task_.rows) * static_cast<double>(results_);
        const int threads = threads_for_work(n_threads, products);
        parallel_for_near(threads, row_items_ * strips_ * panels_,
                          [&](std::size_t item, int) noexcept { multiply(item); });
        for (std::size_t item = 1; item < row_items_; ++item) {
            const double* const added = buffer_.data() + (item - 1) * results_;
            for (std::size_t i = 0; i < results_; ++i) task_.C[i] += added[i];
        }
    }

 private:
    // Scratch memory for the sums of a strip with a panel. Sums that are moved as vectors reach past the last of them.
    struct Scratch {
        static constexpr std::size_t stride = kernels::max_panel_columns + kernels::max_lanes;
        alignas(cache_line) double values[(strip_columns + kernels::max_lanes) * stride];
    };

    void multiply(std::size_t item) noexcept {
        const std::size_t strip = item / panels_ % strips_, panel = item % panels_;
        const std::size_t part = item / (panels_ * strips_);
        const Range rows{part * item_rows_, std::min((part + 1) * item_rows_, task_.rows)};
        const Range strip_range{strip * strip_columns,
                                std::min((strip + 1) * strip_columns, left_.columns)};
        const Range panel_range{panel * width_, std::min((panel + 1) * width_, right_.columns)};
        double* const C = part == 0 ? task_.C : buffer_.data() + (part - 1) * results_;
        // Whole tiles that meet all rows at once store their sums in the result.
        const bool through =
            rows.size() <= tile_rows && !transposed_ && panel_range.size() % lanes_ == 0;
        const std::size_t written = through ? strip_range.size() / mr_ * mr_ : 0;
        Scratch sums;
        for (std::size_t row = rows.begin; row < std::max(rows.end, rows.begin + 1);
             row += tile_rows) {
            const std::size_t count = std::min(tile_rows, rows.end - row);
            add(row, count, row == rows.begin, strip_range, panel_range, written, C, sums);
        }
        if (written < strip_range.size()) place(strip_range, panel_range, written, C, sums);
    }

    // The last tile and the last vector end with the last column, so they overlap the ones before.
    void add(std::size_t row, std::size_t rows, bool first, Range strip, Range panel,
             std::size_t written, double* C, Scratch& sums) const noexcept {
        const std::size_t vectors = (panel.size() + lanes_ - 1) / lanes_;
        const std::size_t begin = std::min(panel.begin, right_.columns - lanes_);
        const T* const right = right_.at(row, begin);
        const auto last = static_cast<std::ptrdiff_t>(panel.end - lanes_ - begin);
        const auto& whole = first ? kernels_.first : kernels_.tile;
        const auto& half = first ? kernels_.first_half : kernels_.half;
        for (std::size_t i = strip.begin; i < strip.end; i += mr_) {
            const auto& tiles = height_of_tile(i) == mr_ ? whole : half;
            const bool through = i - strip.begin < written;
            double* const out = through ? C + i * task_.C_stride + panel.begin
                                        : sums.values + (i - strip.begin) * Scratch::stride;
            tiles[vectors - 1](
                left_.at(row, first_column(i)), left_.stride, right, right_.stride, last,
                static_cast<int>(rows), out,
                static_cast<std::ptrdiff_t>(through ? task_.C_stride : Scratch::stride),
                reinterpret_cast<const unsigned char*>(right), 0);
        }
    }

    // The tile that begins with row i of the sums: its height, and the first column of the left side.
    std::size_t height_of_tile(std::size_t i) const noexcept {
        return left_.columns - i <= mr_ / 2 ? mr_ / 2 : mr_;
    }
    std::size_t first_column(std::size_t i) const noexcept {
        return std::min(i, left_.columns - height_of_tile(i));
    }

    // Moves the sums of a strip with a panel, but for the first `written` rows, to the result: apart from the rest, those of a
    // tile and of a vector that overlap others.
    void place(Range strip, Range panel, std::size_t written, double* C,
               Scratch& sums) const noexcept {
        const Range rows{strip.begin + written, strip.end};
        const std::size_t last_tile = strip.begin + (strip.size() - 1) / mr_ * mr_;
        const std::size_t last_vector = panel.begin + (panel.size() - 1) / lanes_ * lanes_;
        const std::size_t tile_overlap = last_tile - first_column(last_tile);
        const std::size_t vector_overlap = last_vector + lanes_ - panel.end;
        const auto move = [&](Range i, std::size_t down, Range j, std::size_t along) noexcept {
            if (i.begin >= i.end || j.begin >= j.end) return;
            const auto kernel = transposed_ ? task_.product.place_transposed : task_.product.place;
            const double* const from = sums.values +
                                       (i.begin - strip.begin + down) * Scratch::stride +
                                       (j.begin - panel.begin + along);
            const std::size_t to = transposed_ ? j.begin * task_.C_stride + i.begin
                                               : i.begin * task_.C_stride + j.begin;
            kernel(from, static_cast<std::ptrdiff_t>(Scratch::stride), static_cast<int>(i.size()),
                   static_cast<int>(j.size()), kernels::no_diagonal, 0, nullptr, C + to,
                   static_cast<std::ptrdiff_t>(task_.C_stride), 0);
        };
        const Range above{rows.begin, last_tile}, below{std::max(rows.begin, last_tile), strip.end};
        move(above, 0, {panel.begin, last_vector}, 0);
        move(above, 0, {last_vector, panel.end}, vector_overlap);
        move(below, tile_overlap, {panel.begin, last_vector}, 0);
        move(below, tile_overlap, {last_vector, panel.end}, vector_overlap);
    }

    const DirectProduct& task_;
    const kernels::Narrow<T>& kernels_;
    std::size_t lanes_;
    std::size_t mr_;
    std::size_t width_;  // of a panel
    bool swapped_;       // the task's right side is on the left
    bool transposed_;    // the result is rightᵀ left
    InPlaceRows<T> left_;
    InPlaceRows<T> right_;
    std::size_t strips_;
    std::size_t panels_;
    std::size_t row_items_;
    std::size_t item_rows_;
    std::size_t results_;
    Buffer<double> buffer_;  // the results of all rows but the first item's
};

}  // namespace

void multiply_in_place(const DirectProduct& task, int n_threads) {
    if (&task.product == &table().f64)
        InPlacePass<double>(task).run(n_threads);
    else
        InPlacePass<float>(task).run(n_threads);
}

}  // namespace bpls::gram_detail
