// A pass that packs all rows, then one that multiplies strips of the result; threads share the panels.
#include "core/gram/direct.hpp"

#include <algorithm>
#include <cstring>

#include "core/dispatch.hpp"
#include "core/threads.hpp"

namespace bpls::gram_detail {
namespace {

// Rows of the result that an item of work computes: a multiple of every level's tiles and vectors, whose sums with one
// panel stay in the first cache.
constexpr std::size_t strip_rows = 64;
// A second thread, which also moves panels between caches, pays from so many times the multiply-adds of floats on.
constexpr double integers_at_once = 8;
// Rows of a result that is too large for the second cache.
constexpr std::size_t large_result = 300;
// The sums of a row with one panel, and room for a vector that begins with the panel's last column.
constexpr std::size_t widest_row = kernels::max_panel_columns + kernels::max_lanes;

std::size_t panel_rows(const DirectProduct& task) noexcept {
    return std::clamp<std::size_t>(task.rows, 1,
                                   static_cast<std::size_t>(task.product.panels.block_rows));
}

// The columns of the left side are packed where the panels of the right side do not hold them: row weights are packed into
// the right side only.
bool packs_left(const DirectProduct& task) noexcept {
    return task.symmetric == 0 || task.weight.has_value();
}

// Whether a side is one matrix of the product's own type that can be read where it is.
bool side_in_place(const DirectProduct& task, const Columns& side) noexcept {
    const ConstMatrix& first = *side.begin();
    return side.end() - side.begin() == 1 && is_float(first.dtype) &&
           size_of(first.dtype) == task.product.panels.element && readable_in_place(first);
}

InPlace sides_in_place(const DirectProduct& task) noexcept {
    if (!side_in_place(task, task.right) || (task.weight && !task.transposed)) return InPlace::none;
    return side_in_place(task, task.left) && !task.weight ? InPlace::both : InPlace::right;
}

class Packed {
 public:
    explicit Packed(const DirectProduct& task)
        : task_(task),
          panels_(task.product.panels),
          layout_(panels_, static_cast<int>(panel_rows(task))),
          first_place_(task.symmetric == task.right.width()
                           ? layout_.first_place(task.symmetric, kernels::max_lanes)
                           : 0),
          set_rows_(panel_rows(task)),
          // Without any rows, the first tiles store zeros.
          sets_(std::max<std::size_t>(1, (task.rows + set_rows_ - 1) / set_rows_)),
          left_bytes_(has_left(task) ? layout_.size(task.left.width()) : 0),
          set_bytes_(left_bytes_ + layout_.size(task.right.width())),
          sums_offset_(sets_ * set_bytes_),
          buffer_(sums_offset_ + layout_.padded(task.right.width()) * sizeof(double)) {}

    const PanelLayout& layout() const noexcept { return layout_; }
    // The place of the first column in the panels of either side.
    std::size_t first_place() const noexcept { return first_place_; }
    std::size_t sets() const noexcept { return sets_; }
    // The panels of the side that has more of them.
    std::size_t panels() const noexcept {
        return (set_bytes_ - left_bytes_ > left_bytes_ ? set_bytes_ - left_bytes_ : left_bytes_) /
               layout_.bytes;
    }
    int steps(std::size_t set) const noexcept { return steps_of(panels_, rows_of(set)); }
    unsigned char* left(std::size_t set) noexcept { return buffer_.data() + set * set_bytes_; }
    unsigned char* right_panels(std::size_t set) noexcept { return left(set) + left_bytes_; }
    // The sums of the right side's columns; only of products that subtract an offset from the left side.
    double* column_sums() noexcept {
        return reinterpret_cast<double*>(buffer_.data() + sums_offset_);
    }

    // Packs some whole panels of the right side, and of the left one.
    void pack(Range panels) noexcept {
        double* const sums = column_sums();
        const double offset = task_.product.left_offset;
        if (offset != 0)
            std::fill(sums + panels.begin * layout_.width, sums + panels.end * layout_.width, 0.0);
        double weights[kernels::integer_block_rows];
        for (std::size_t set = 0; set < sets_; ++set) {
            const std::size_t row = set * set_rows_;
            const int rows = rows_of(set);
            if (task_.weight)
                table().dense_f64.copy_rows[task_.weight->dtype](
                    task_.weight->at(row, 0), task_.weight->row_stride, task_.weight->col_stride,
                    static_cast<std::size_t>(rows), 1, weights, 1);
            const double* weight = task_.weight ? weights : nullptr;
            if (packs_left(task_))
                pack_side(task_.left, panels, row, rows, task_.transposed ? weight : nullptr,
                          left(set));
            pack_side(task_.right, panels, row, rows, task_.transposed ? nullptr : weight,
                      right_panels(set));
            if (offset != 0) subtract_offset(panels, set);
        }
    }

 private:
    int rows_of(std::size_t set) const noexcept {
        return static_cast<int>(std::min(set_rows_, task_.rows - set * set_rows_));
    }

    void pack_side(const Columns& columns, Range panels, std::size_t row, int rows,
                   const double* weight, unsigned char* to) const noexcept {
        const std::size_t end = first_place_ + columns.width();
        const Range places{std::max(panels.begin * layout_.width, first_place_),
                           std::min(panels.end * layout_.width, end)};
        if (places.begin >= places.end) return;
        // Tiles also read the lanes before the first column and after the last one.
        const std::size_t last = layout_.count(end) - 1;
        if (panels.begin == 0 && first_place_ > 0) std::memset(to, 0, layout_.bytes);
        if (last < panels.end && end % layout_.width != 0)
            std::memset(to + last * layout_.bytes, 0, layout_.bytes);
        const Range packed{places.begin - first_place_, places.end - first_place_};
        pack_columns(layout_, columns, packed, row, rows, weight, to, places.begin);
    }

    // Products with an offset are symmetric: their left panels are made from the right ones.
    void subtract_offset(Range panels, std::size_t set) noexcept {
        for (std::size_t p = panels.begin; p < panels.end; ++p) {
            const unsigned char* panel = right_panels(set) + p * layout_.bytes;
            task_.product.column_sums(panel, steps(set), column_sums() + p * layout_.width);
            task_.product.subtract_offset(panel, steps(set), left(set) + p * layout_.bytes);
        }
    }

    const DirectProduct& task_;
    const kernels::Panels& panels_;
    PanelLayout layout_;
    std::size_t first_place_;
    std::size_t set_rows_;
    std::size_t sets_;
    std::size_t left_bytes_;
    std::size_t set_bytes_;
    std::size_t sums_offset_;
    Buffer<unsigned char> buffer_;
};

// Some panels of a strip of the result. Rows and columns are numbered by their places in the panels.
class Strip {
 public:
    Strip(const DirectProduct& task, Packed& packed, Range rows, Range panels) noexcept
        : task_(task),
          product_(task.product),
          packed_(packed),
          rows_(rows),
          panels_(panels),
          first_(packed.first_place()),
          symmetric_end_(task.symmetric == 0 ? 0 : first_ + task.symmetric),
          mr_(static_cast<std::size_t>(task.product.mr)),
          lanes_(static_cast<std::size_t>(task.product.lanes)),
          width_(packed.layout().width),
          stride_(width_ + kernels::max_lanes),
          sum_bytes_(task.product.sum_bytes()) {}

    void multiply() noexcept {
        const std::size_t end = first_ + task_.right.width();
        for (std::size_t j = panels_.begin * width_; j < panels_.end * width_; j += width_) {
            const Range panel{j, std::min(j + width_, end)};
            const std::size_t written = rows_written_through(panel);
            for (std::size_t set = 0; set < packed_.sets(); ++set) add(panel, written, set);
            if (written < rows_.size()) place(panel, written);
        }
    }

 private:
    // The first rows of the strip whose tiles with a panel store their sums in the result: whole tiles of C where all rows are
    // one set.
    std::size_t rows_written_through(Range panel) const noexcept {
        const bool whole = packed_.sets() == 1 && task_.symmetric == 0 && !task_.transposed &&
                           panel.size() % lanes_ == 0;
        return whole ? rows_.size() / mr_ * mr_ : 0;
    }

    void add(Range panel, std::size_t written, std::size_t set) noexcept {
        const PanelLayout& layout = packed_.layout();
        unsigned char* const left = has_left(task_) ? packed_.left(set) : packed_.right_panels(set);
        const int steps = packed_.steps(set);
        const kernels::Tile* const tiles = set == 0 ? product_.first : product_.tile;
        for (std::size_t i = rows_.begin; i < rows_.end; i += mr_) {
            const std::size_t wanted = std::max(panel.begin, std::min(i, symmetric_end_));
            if (wanted >= panel.end) break;
            const std::size_t from = wanted / lanes_ * lanes_;
            const std::size_t vectors = (panel.end - from + lanes_ - 1) / lanes_;
            const unsigned char* values = layout.column(packed_.right_panels(set), from);
            const bool through = i - rows_.begin < written;
            tiles[vectors - 1](layout.column(left, i), values, product_.panels.nr, steps,
                               through ? task_.C + i * task_.C_stride + from
                                       : sum_at(i - rows_.begin, from - panel.begin),
                               static_cast<std::ptrdiff_t>(through ? task_.C_stride : stride_),
                               values, 0);
        }
    }

    // Moves the sums with a panel to the result, from some row of the strip on.
    void place(Range panel, std::size_t row) noexcept {
        const std::size_t symmetric = task_.symmetric, i = rows_.begin + row - first_;
        const Range of_G{std::max(panel.begin, first_), std::min(panel.end, symmetric_end_)};
        if (of_G.begin < of_G.end) {
            const std::size_t j = of_G.begin - first_;
            const int diagonal = static_cast<int>(i) - static_cast<int>(j);
            // Lines of a large result come from memory: they are fetched while the next panel is multiplied.
            const bool fetches = symmetric >= large_result && panel.end + width_ <= symmetric_end_;
            const std::size_t next = fetches ? of_G.size() : 0;
            place(product_.place, panel, row, of_G, diagonal, task_.G + i * symmetric + j,
                  symmetric, next);
            place(product_.place_transposed, panel, row, of_G, diagonal,
                  task_.G + j * symmetric + i, symmetric, next * symmetric);
        }
        const Range of_C{std::max(panel.begin, symmetric_end_), panel.end};
        if (of_C.begin >= of_C.end) return;
        const std::size_t column = of_C.begin - symmetric_end_, stride = task_.C_stride;
        if (task_.transposed)
            place(product_.place_transposed, panel, row, of_C, kernels::no_diagonal,
                  task_.C + column * stride + i, stride, 0);
        else
            place(product_.place, panel, row, of_C, kernels::no_diagonal,
                  task_.C + i * stride + column, stride, 0);
    }

    void place(kernels::PlaceSums kernel, Range panel, std::size_t row, Range columns, int diagonal,
               double* out, std::size_t out_stride, std::size_t ahead) noexcept {
        kernel(sum_at(row, columns.begin - panel.begin), static_cast<std::ptrdiff_t>(stride_),
               static_cast<int>(rows_.size() - row), static_cast<int>(columns.size()), diagonal,
               product_.left_offset, packed_.column_sums() + columns.begin, out,
               static_cast<std::ptrdiff_t>(out_stride), static_cast<std::ptrdiff_t>(ahead));
    }

    void* sum_at(std::size_t row, std::size_t column) noexcept {
        return sums_ + (row * stride_ + column) * sum_bytes_;
    }

    const DirectProduct& task_;
    const kernels::Product& product_;
    Packed& packed_;
    Range rows_;
    Range panels_;
    std::size_t first_;
    std::size_t symmetric_end_;
    std::size_t mr_;
    std::size_t lanes_;
    std::size_t width_;
    std::size_t stride_;
    std::size_t sum_bytes_;
    alignas(cache_line) unsigned char sums_[strip_rows * widest_row * sizeof(double)];
};

// Cuts the result into strips and their panels into shares, so that every thread has several items of work.
class Shares {
 public:
    Shares(const DirectProduct& task, const Packed& packed, int threads) noexcept
        : width_(packed.layout().width),
          first_(packed.first_place()),
          end_(first_ + task.left.width()),
          symmetric_end_(task.symmetric == 0 ? 0 : first_ + task.symmetric),
          panels_((first_ + task.right.width() + width_ - 1) / width_) {
        std::size_t all = 0;
        for (std::size_t row = first_; row < end_; row += strip_rows)
            all += panels_from(row).size();
        const std::size_t wanted =
            threads == 1 ? 1 : shares_per_thread * static_cast<std::size_t>(threads);
        share_ = threads == 1 ? panels_ : (all + wanted - 1) / wanted;
        for (std::size_t row = first_; row < end_; row += strip_rows) items_ += shares_of(row);
    }

    std::size_t items() const noexcept { return items_; }

    // Calls body(rows, panels) with an item of work.
    template <class F>
    void at(std::size_t item, F&& body) const noexcept {
        std::size_t row = first_;
        for (; item >= shares_of(row); row += strip_rows) item -= shares_of(row);
        const Range panels = panels_from(row);
        const std::size_t begin = panels.begin + item * share_;
        body(Range{row, std::min(row + strip_rows, end_)},
             Range{begin, std::min(begin + share_, panels.end)});
    }

 private:
    static constexpr std::size_t shares_per_thread = 2;

    // A strip begins with the panel of its first row, if the product is symmetric.
    Range panels_from(std::size_t row) const noexcept {
        return {std::min(row, symmetric_end_) / width_, panels_};
    }
    std::size_t shares_of(std::size_t row) const noexcept {
        return (panels_from(row).size() + share_ - 1) / share_;
    }

    std::size_t width_;
    std::size_t first_;
    std::size_t end_;
    std::size_t symmetric_end_;
    std::size_t panels_;
    std::size_t share_ = 1;  // panels
    std::size_t items_ = 0;
};

}  // namespace

bool has_left(const DirectProduct& task) noexcept {
    return packs_left(task) || task.product.left_offset != 0;
}

ProductShape shape_of(const DirectProduct& task) noexcept {
    return {.rows = task.rows,
            .left = task.left.width(),
            .right = task.right.width(),
            .symmetric = task.symmetric > 0,
            .in_place = sides_in_place(task)};
}

void multiply_directly(const DirectProduct& task, int n_threads) {
    const std::size_t height = task.left.width(), width = task.right.width();
    const double products =
        static_cast<double>(height) * static_cast<double>(width) * static_cast<double>(task.rows);
    const double work = products / (task.symmetric > 0 ? 2 : 1) /
                        (task.product.integer_sums ? integers_at_once : 1);
    const int threads = threads_for_work(n_threads, work);
    Packed packed(task);
    const std::size_t panels = packed.panels();
    const std::size_t share =
        (panels + static_cast<std::size_t>(threads) - 1) / static_cast<std::size_t>(threads);
    parallel_for_near(threads, (panels + share - 1) / share, [&](std::size_t item, int) noexcept {
        packed.pack({item * share, std::min((item + 1) * share, panels)});
    });
    const Shares shares(task, packed, threads);
    parallel_for_near(threads, shares.items(), [&](std::size_t item, int) noexcept {
        shares.at(item, [&](Range of_rows, Range of_panels) noexcept {
            Strip(task, packed, of_rows, of_panels).multiply();
        });
    });
}

}  // namespace bpls::gram_detail
