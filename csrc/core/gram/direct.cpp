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

// The left side has panels of its own.
bool has_left(const DirectProduct& task) noexcept {
    return packs_left(task) || task.product.left_offset != 0;
}

// Columns of the right side that tiles read in place, a multiple of the panels' width: of a matrix of the product's own type,
// unless so many tiles share a panel that packing it pays.
std::size_t in_place_columns(const DirectProduct& task) noexcept {
    // Bytes: rows at multiples of this share a few cache sets.
    constexpr std::ptrdiff_t colliding = 4096;
    const auto width = static_cast<std::size_t>(task.product.panels.nr);
    const bool in_place = task.symmetric == 0 && task.left.width() <= strip_rows &&
                          right_in_place(task) && task.right.begin()->row_stride % colliding != 0;
    return in_place ? task.right.width() / width * width : 0;
}

class Packed {
 public:
    explicit Packed(const DirectProduct& task)
        : task_(task),
          panels_(task.product.panels),
          layout_(panels_, static_cast<int>(panel_rows(task))),
          first_place_(task.symmetric == task.right.width() ? layout_.first_place(task.symmetric)
                                                            : 0),
          set_rows_(panel_rows(task)),
          sets_((task.rows + set_rows_ - 1) / set_rows_),
          in_place_(in_place_columns(task)),
          left_bytes_(has_left(task) ? layout_.size(task.left.width()) : 0),
          set_bytes_(left_bytes_ + layout_.size(task.right.width() - in_place_)),
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
    // The values of some rows of the right side from column `from` on, and the elements from one row to the next.
    const unsigned char* right(std::size_t set, std::size_t from) noexcept {
        return from < in_place_ ? task_.right.begin()->at(set * set_rows_, from)
                                : layout_.column(right_panels(set), from - in_place_);
    }
    std::ptrdiff_t right_stride(std::size_t from) const noexcept {
        return from < in_place_ ? task_.right.begin()->row_stride / panels_.element : panels_.nr;
    }
    // The lines that a tile fetches while it reads `values`: where rows are read in place, line `number` of the next panel.
    Prefetch::Lines next(std::size_t from, std::size_t number,
                         const unsigned char* values) const noexcept {
        if (from + 2 * layout_.width > in_place_) return {values, 0};
        const std::size_t panel = layout_.width * static_cast<std::size_t>(panels_.element);
        return {values + panel + number * cache_line, task_.right.begin()->row_stride};
    }
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
                pack_side(task_.left, 0, panels, row, rows, task_.transposed ? weight : nullptr,
                          left(set));
            pack_side(task_.right, in_place_, panels, row, rows,
                      task_.transposed ? nullptr : weight, right_panels(set));
            if (offset != 0) subtract_offset(panels, set);
        }
    }

 private:
    int rows_of(std::size_t set) const noexcept {
        return static_cast<int>(std::min(set_rows_, task_.rows - set * set_rows_));
    }

    // Packs the columns of some panels. Column `first` is at first_place().
    void pack_side(const Columns& columns, std::size_t first, Range panels, std::size_t row,
                   int rows, const double* weight, unsigned char* to) const noexcept {
        const std::size_t end = first_place_ + columns.width() - first;
        const Range places{std::max(panels.begin * layout_.width, first_place_),
                           std::min(panels.end * layout_.width, end)};
        if (places.begin >= places.end) return;
        // Tiles also read the lanes before the first column and after the last one.
        if (panels.begin == 0 && first_place_ > 0) std::memset(to, 0, layout_.bytes);
        if (places.end == end && end % layout_.width != 0)
            std::memset(to + end / layout_.width * layout_.bytes, 0, layout_.bytes);
        pack_columns(layout_, columns,
                     {first + places.begin - first_place_, first + places.end - first_place_}, row,
                     rows, weight, to, places.begin);
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
    std::size_t in_place_;  // columns of the right side that are not packed
    std::size_t left_bytes_;
    std::size_t set_bytes_;
    std::size_t sums_offset_;
    Buffer<unsigned char> buffer_;
};

// The rows of a strip of the result, multiplied panel by panel. Rows and columns are numbered by their places in the panels.
class Strip {
 public:
    Strip(const DirectProduct& task, Packed& packed, Range rows) noexcept
        : task_(task),
          product_(task.product),
          packed_(packed),
          rows_(rows),
          first_(packed.first_place()),
          symmetric_end_(task.symmetric == 0 ? 0 : first_ + task.symmetric),
          mr_(static_cast<std::size_t>(task.product.mr)),
          lanes_(static_cast<std::size_t>(task.product.lanes)),
          width_(packed.layout().width),
          stride_(width_ + kernels::max_lanes),
          sum_bytes_(task.product.sum_bytes()) {}

    void multiply() noexcept {
        const std::size_t end = first_ + task_.right.width();
        const std::size_t begin = std::min(rows_.begin, symmetric_end_) / width_ * width_;
        for (std::size_t j = begin; j < end; j += width_) {
            const Range panel{j, std::min(j + width_, end)};
            std::memset(sums_, 0, round_up(rows_.size(), mr_) * stride_ * sum_bytes_);
            for (std::size_t set = 0; set < packed_.sets(); ++set) add(panel, set);
            place(panel);
        }
    }

 private:
    void add(Range panel, std::size_t set) noexcept {
        const PanelLayout& layout = packed_.layout();
        unsigned char* const left = has_left(task_) ? packed_.left(set) : packed_.right_panels(set);
        const int steps = packed_.steps(set);
        for (std::size_t i = rows_.begin; i < rows_.end; i += mr_) {
            const std::size_t wanted = std::max(panel.begin, std::min(i, symmetric_end_));
            if (wanted >= panel.end) break;
            const std::size_t from = wanted / lanes_ * lanes_;
            const std::size_t vectors = (panel.end - from + lanes_ - 1) / lanes_;
            const unsigned char* values = packed_.right(set, from);
            const auto lines = packed_.next(from, (i - rows_.begin) / mr_, values);
            product_.tile[vectors - 1](layout.column(left, i), values, packed_.right_stride(from),
                                       steps, sum_at(i - rows_.begin, from - panel.begin),
                                       static_cast<std::ptrdiff_t>(stride_), lines.first,
                                       lines.stride);
        }
    }

    // Moves the sums with a panel to the result.
    void place(Range panel) noexcept {
        const std::size_t symmetric = task_.symmetric, i = rows_.begin - first_;
        const Range of_G{std::max(panel.begin, first_), std::min(panel.end, symmetric_end_)};
        if (of_G.begin < of_G.end) {
            const std::size_t j = of_G.begin - first_;
            const int diagonal = static_cast<int>(i) - static_cast<int>(j);
            // Lines of a large result come from memory: they are fetched while the next panel is multiplied.
            const std::size_t next =
                symmetric >= large_result && panel.end + width_ <= symmetric_end_ ? width_ : 0;
            place(product_.place, panel, of_G, diagonal, task_.G + i * symmetric + j, symmetric,
                  next);
            place(product_.place_transposed, panel, of_G, diagonal, task_.G + j * symmetric + i,
                  symmetric, next * symmetric);
        }
        const Range of_C{std::max(panel.begin, symmetric_end_), panel.end};
        if (of_C.begin >= of_C.end) return;
        const std::size_t column = of_C.begin - symmetric_end_, stride = task_.C_stride;
        if (task_.transposed)
            place(product_.place_transposed, panel, of_C, kernels::no_diagonal,
                  task_.C + column * stride + i, stride, 0);
        else
            place(product_.place, panel, of_C, kernels::no_diagonal, task_.C + i * stride + column,
                  stride, 0);
    }

    void place(kernels::PlaceSums kernel, Range panel, Range columns, int diagonal, double* out,
               std::size_t out_stride, std::size_t ahead) noexcept {
        kernel(sum_at(0, columns.begin - panel.begin), static_cast<std::ptrdiff_t>(stride_),
               static_cast<int>(rows_.size()), static_cast<int>(columns.size()), diagonal,
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
    std::size_t first_;
    std::size_t symmetric_end_;
    std::size_t mr_;
    std::size_t lanes_;
    std::size_t width_;
    std::size_t stride_;
    std::size_t sum_bytes_;
    alignas(cache_line) unsigned char sums_[strip_rows * widest_row * sizeof(double)];
};

}  // namespace

bool right_in_place(const DirectProduct& task) noexcept {
    const ConstMatrix& first = *task.right.begin();
    const bool weighted = task.weight && !task.transposed;
    return !weighted && task.right.end() - task.right.begin() == 1 && is_float(first.dtype) &&
           size_of(first.dtype) == task.product.panels.element && readable_in_place(first);
}

void multiply_directly(const DirectProduct& task, int n_threads) {
    const std::size_t height = task.left.width(), width = task.right.width();
    const double products =
        static_cast<double>(height) * static_cast<double>(width) * static_cast<double>(task.rows);
    const int threads = threads_for_work(n_threads, task.symmetric > 0 ? products / 2 : products);
    Packed packed(task);
    const std::size_t panels =
        packed.layout().count(packs_left(task) ? std::max(height, width) : width);
    const std::size_t share =
        (panels + static_cast<std::size_t>(threads) - 1) / static_cast<std::size_t>(threads);
    parallel_for(threads, (panels + share - 1) / share, [&](std::size_t item, int) noexcept {
        packed.pack({item * share, std::min((item + 1) * share, panels)});
    });
    parallel_for(threads, (height + strip_rows - 1) / strip_rows,
                 [&](std::size_t item, int) noexcept {
                     const std::size_t begin = packed.first_place() + item * strip_rows;
                     const std::size_t end = packed.first_place() + height;
                     Strip(task, packed, {begin, std::min(begin + strip_rows, end)}).multiply();
                 });
}

}  // namespace bpls::gram_detail
