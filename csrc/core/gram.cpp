// Gram matrices and cross products, AᵀW [A B]. What a bias or a mean needs beyond that are the sums of columns, which
// come from the same panels.
//
// The rows are cut into slots of a fixed size and the columns into blocks of a fixed size, so the additions of every
// result happen in one order whatever the number of threads. A thread takes a slot, sums it into memory of its own, and
// adds that to the result when its turn has come; where there are no more slots than threads, the threads share the rows
// of the result when all slots are summed. Columns of A that are zero all over a slot are left out of it, and
// products with what is zero in all columns of a vector: neither changes a bit of the sums.
#include "bpls/gram.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/dispatch.hpp"
#include "core/panels.hpp"
#include "core/threads.hpp"

namespace bpls {
namespace {

constexpr std::size_t block_columns = 1024;       // of either side of a product
constexpr std::size_t panels_limit = 6u << 20;    // bytes of packed rows per part
constexpr std::size_t scratch_limit = 12u << 20;  // bytes per thread for products that share a pass
constexpr std::size_t group_columns = 128;      // sums of a group squared stay in the second cache
constexpr std::size_t small_sums = 256u << 10;  // bytes of sums that do so without groups
constexpr std::size_t added_rows = 64;          // of a result, that a thread adds up at a time

// Rows of a slot: enough that summing dominates over adding up the slots, few enough to share among threads. No more
// threads than slots can work: 12 on 60000 x 784, 29 on 60000 x 100, 4 on 5000 of either, 2 on 1000, or on 384 if these are
// wide.
std::size_t rows_of_slot(std::size_t rows, std::size_t columns) noexcept {
    const std::size_t wanted = std::max<std::size_t>(2048, 6 * columns);
    const std::size_t shared = columns < 256 ? 512 : 384;
    const std::size_t fewest = rows < shared ? 1 : rows < 2048 ? 2 : 4;
    const std::size_t slots = std::max(fewest, rows / wanted);
    const std::size_t even = std::max<std::size_t>(1, (rows + slots - 1) / slots);
    return round_up(even, slots < 8 ? 64 : kernels::integer_block_rows);
}

// ---- the columns that take part in a slot

using Runs = std::vector<Range>;  // of columns, in increasing order

// Calls action(run, at) for every run within a range; `at` counts the columns of the runs before it.
template <class F>
void each_run(const Runs& runs, Range within, F&& action) {
    std::size_t at = 0;
    for (const Range& run : runs) {
        const Range part{std::max(run.begin, within.begin), std::min(run.end, within.end)};
        if (part.begin >= part.end) continue;
        action(part, at);
        at += part.size();
    }
}

std::size_t columns_in(const Runs& runs, Range within) noexcept {
    std::size_t count = 0;
    each_run(runs, within, [&](Range run, std::size_t) noexcept { count += run.size(); });
    return count;
}

// Finds the columns of a matrix that are not zero all over some rows.
class NonzeroColumns {
 public:
    // Unless they are `wanted`, it does not look and takes all.
    NonzeroColumns(const ConstMatrix& A, bool wanted)
        : A_(&A),
          row_bytes_(A.cols * static_cast<std::size_t>(size_of(A.dtype))),
          looks_(wanted && A.cols >= 64 && A.col_stride == size_of(A.dtype)) {
        runs_.reserve(most_runs());
        if (looks_) seen_.resize(row_bytes_);
    }

    const Runs& among(Range rows) noexcept {
        runs_.assign(1, {0, A_->cols});
        if (!looks_ || rows.size() < sample_rows) return runs_;
        std::fill(seen_.begin(), seen_.end(), static_cast<unsigned char>(0));
        // Often enough that little has been looked at in vain when few columns turn out to be zero.
        for (std::size_t row = rows.begin, next = row + sample_rows; row < rows.end;
             row = next, next += 8 * sample_rows) {
            look_at({row, std::min(next, rows.end)});
            if (mostly_nonzero()) return runs_;
        }
        collect();
        return runs_;
    }
    // Two runs are further apart than the smallest gap. Vectors that hold so many never grow.
    std::size_t most_runs() const noexcept { return A_->cols / (smallest_gap + 1) + 1; }

 private:
    static constexpr std::size_t sample_rows = 64;
    static constexpr std::size_t smallest_gap = 4;  // columns: fewer zero ones are carried along

    void look_at(Range rows) noexcept {
        for (std::size_t row = rows.begin; row < rows.end; ++row)
            table().merge_bits(A_->at(row, 0), row_bytes_, seen_.data());
    }

    bool is_nonzero(std::size_t column) const noexcept {
        const auto size = static_cast<std::size_t>(size_of(A_->dtype));
        return std::any_of(seen_.data() + column * size, seen_.data() + (column + 1) * size,
                           [](unsigned char byte) noexcept { return byte != 0; });
    }

    // Where few columns are zero, leaving them out gains less than looking for them costs.
    bool mostly_nonzero() const noexcept {
        std::size_t nonzero = 0;
        for (std::size_t column = 0; column < A_->cols; ++column) nonzero += is_nonzero(column);
        return nonzero > A_->cols - A_->cols / 16;
    }

    void collect() noexcept {
        runs_.clear();
        for (std::size_t column = 0; column < A_->cols; ++column) {
            if (!is_nonzero(column)) continue;
            if (runs_.empty() || column > runs_.back().end + smallest_gap)
                runs_.push_back({column, column + 1});
            else
                runs_.back().end = column + 1;
        }
        // One column stays, to meet what may not be finite in a partner of A.
        if (runs_.empty()) runs_.push_back({0, 1});
    }

    const ConstMatrix* A_;
    std::size_t row_bytes_;
    bool looks_;
    std::vector<unsigned char> seen_;  // the bits of all values of a column, or-ed
    Runs runs_;
};

// ---- products over all rows

// The columns of one side of a product. Of the first `of_A`, which are A's, those that are zero can be left out.
struct Side {
    Columns columns;
    std::size_t of_A;

    // `runs` has room for those of A and one more, so nothing is allocated.
    void find_runs(const Runs& nonzero, Runs& runs) const noexcept {
        runs.clear();
        if (of_A > 0) runs = nonzero;
        if (of_A < columns.width()) runs.push_back({of_A, columns.width()});
    }
};

// leftᵀ W right. The first `symmetric` columns of `right` are those of `left`: of their product only the upper triangle is
// computed, into G; the rest goes to C. `column_sums`, where not null, gets 1ᵀ W right. With `transposed` the two sides have
// changed places: rightᵀ W left goes to C and 1ᵀ W left to `column_sums`.
struct Task {
    const kernels::Product& product;
    Side left;
    Side right;
    std::size_t symmetric;
    std::optional<ConstMatrix> weight;
    double* G;
    std::size_t G_stride;
    double* C;
    std::size_t C_stride;
    bool transposed;
    double* column_sums;
    bool in_place;  // the right side needs no packing
};

// What a task's columns are in one slot.
struct NonzeroSides {
    Runs left;
    Runs right;
};

// The steps in which a panel is not zero, as one thread lists them. Where that is nearly everywhere, leaving the others
// out is not worth the trouble, nor is a look at the next panels.
class NonzeroSteps {
 public:
    // How many steps are listed, or all of them where none is to be left out.
    int among(const kernels::Product& product, const unsigned char* values, std::ptrdiff_t stride,
              int vectors, int steps) noexcept {
        if (to_pass_ > 0) {
            --to_pass_;
            return steps;
        }
        const int count = product.nonzero_steps(values, stride, vectors, steps, list_.data());
        if (count <= steps - steps / 8) {
            in_vain_ = 0;
            return count;
        }
        if (++in_vain_ == 12) {
            in_vain_ = 0;
            to_pass_ = 60;
        }
        return steps;
    }
    const int* list() const noexcept { return list_.data(); }

 private:
    std::array<int, kernels::integer_block_rows> list_;
    int in_vain_ = 0;  // looks, one after another
    int to_pass_ = 0;  // panels
};

// A block of a task's result, and the sums of one slot for it. Its scratch memory holds the panels of a chunk of blocks
// of rows, then the sums. `nonzero` is what the slot's NonzeroSides are for the part's task.
class Part {
 public:
    Part(const std::vector<Task>& tasks, std::size_t task, Range left, Range right) noexcept
        : task_index(task),
          task_(&tasks[task]),
          left_(left),
          right_(right),
          layout_(task_->product.panels),
          mr_(static_cast<std::size_t>(task_->product.mr)),
          chunk_blocks_(1),
          in_place_(0),
          diagonal_(task_->symmetric > 0 && left.begin == right.begin),
          // A tile finds the columns of its left side in the panels of the right one, unless they are weighted.
          left_packed_(!diagonal_ || task_->weight),
          adds_column_sums_(task_->column_sums &&
                            (task_->transposed ? right.begin : left.begin) == 0) {
        // Where the sums outgrow the second cache and a panel serves several groups of them, several blocks of rows are
        // packed, and a group takes them all before the next one is touched.
        if (task_->in_place)
            in_place_ = right.size() / layout_.width * layout_.width;
        else if (sums_bytes() > small_sums && left.size() > group_columns &&
                 right.size() > 2 * group_columns)
            chunk_blocks_ = std::clamp<std::size_t>(panels_limit / block_bytes(), 1, 8);
    }

    const std::size_t task_index;

    std::size_t scratch_bytes() const noexcept {
        return round_up(sums_offset() + sums_bytes(), cache_line);
    }
    std::size_t chunk_rows() const noexcept { return chunk_blocks_ * block_rows(); }

    void start(const NonzeroSides& nonzero, unsigned char* scratch) const noexcept {
        const std::size_t left = left_columns(nonzero), right = right_columns(nonzero);
        clear_sums(left, scratch);
        // Packing leaves the lanes past the last column alone.
        for (std::size_t block = 0; block < chunk_blocks_; ++block) {
            clear_last(left_of(scratch, block), left_packed_ ? left : 0);
            clear_last(right_of(scratch, block), right - in_place_);
        }
    }

    // Adds the products of at most chunk_rows() rows.
    void add_rows(const NonzeroSides& nonzero, NonzeroSteps& nonzero_steps, std::size_t row,
                  std::size_t rows, unsigned char* scratch) const noexcept {
        const std::size_t blocks = (rows + block_rows() - 1) / block_rows();
        const auto rows_of = [&](std::size_t block) noexcept {
            return static_cast<int>(std::min(block_rows(), rows - block * block_rows()));
        };
        for (std::size_t block = 0; block < blocks; ++block)
            pack(nonzero, block, row + block * block_rows(), rows_of(block), scratch);
        Prefetch prefetch = next_block(row + rows);
        const Range left{0, left_columns(nonzero)}, right{0, right_columns(nonzero)};
        const std::size_t symmetric = symmetric_columns(nonzero);
        const std::size_t group = round_up(group_columns, layout_.width);
        for (std::size_t j = 0; j < right.end; j += group)
            for (std::size_t i = 0; i < left.end; i += group)
                for (std::size_t block = 0; block < blocks; ++block)
                    multiply({i, std::min(i + group, left.end)},
                             {j, std::min(j + group, right.end)}, symmetric, block,
                             row + block * block_rows(), rows_of(block), nonzero_steps, prefetch,
                             scratch);
    }

    // Adds the sums to some rows of the result.
    void finish(const NonzeroSides& nonzero, unsigned char* scratch, Range some) const noexcept {
        const double* column_sums = column_sums_of(scratch);
        const double offset = task_->product.left_offset;
        each_run(nonzero.left, left_, [&](Range rows, std::size_t i) noexcept {
            each_run(nonzero.right, right_, [&](Range columns, std::size_t j) noexcept {
                const std::size_t end = std::min(rows.end, some.end);
                for (std::size_t r = std::max(rows.begin, some.begin); r < end; ++r)
                    each_panel(columns, j, [&](Range part, std::size_t at) noexcept {
                        add_to_result(r, part, sums_of(scratch, i + r - rows.begin, at), offset,
                                      column_sums + at);
                    });
            });
        });
        if (!adds_column_sums_ || some.begin > 0) return;
        each_run(weighted_runs(nonzero), weighted_range(),
                 [&](Range columns, std::size_t j) noexcept {
                     for (std::size_t c = columns.begin; c < columns.end; ++c)
                         task_->column_sums[c] += column_sums[j + c - columns.begin];
                 });
    }

 private:
    // Columns of the two sides that take part, and how many of the right side's are the left side's.
    std::size_t left_columns(const NonzeroSides& nonzero) const noexcept {
        return columns_in(nonzero.left, left_);
    }
    std::size_t right_columns(const NonzeroSides& nonzero) const noexcept {
        return columns_in(nonzero.right, right_);
    }
    std::size_t symmetric_columns(const NonzeroSides& nonzero) const noexcept {
        return diagonal_ ? left_columns(nonzero) : 0;
    }

    // The side that has the weights, and whose columns are summed.
    const Runs& weighted_runs(const NonzeroSides& nonzero) const noexcept {
        return task_->transposed ? nonzero.left : nonzero.right;
    }
    const Range& weighted_range() const noexcept { return task_->transposed ? left_ : right_; }
    unsigned char* weighted_panels(unsigned char* scratch, std::size_t block) const noexcept {
        return task_->transposed ? left_of(scratch, block) : right_of(scratch, block);
    }
    bool sums_columns() const noexcept {
        return adds_column_sums_ || task_->product.left_offset != 0;
    }

    // On the diagonal nothing is added, and nothing taken, left of the panel that a tile's first row is in.
    void clear_sums(std::size_t left, unsigned char* scratch) const noexcept {
        const std::size_t columns = layout_.padded(right_.size());
        for (std::size_t i = 0; i < left; i += mr_) {
            const std::size_t first = diagonal_ ? i / layout_.width * layout_.width : 0;
            std::fill_n(sums_of(scratch, i, first), mr_ * (columns - first), 0.0);
        }
        std::fill_n(column_sums_of(scratch), sums_bytes() / sizeof(double) - products(), 0.0);
    }

    void clear_last(unsigned char* panels, std::size_t columns) const noexcept {
        if (columns > 0)
            std::memset(panels + (layout_.count(columns) - 1) * layout_.bytes, 0, layout_.bytes);
    }

    // Packs a block of rows. A few rows at a time pass through all panels, in the order in which they lie in memory.
    void pack(const NonzeroSides& nonzero, std::size_t block, std::size_t row, int rows,
              unsigned char* scratch) const noexcept {
        const double* weights = weights_of(row, rows, scratch);
        const kernels::Panels& panels = *layout_.panels;
        for (int done = 0; done < rows; done += packed_rows) {
            const int count = std::min(packed_rows, rows - done);
            const auto offset =
                static_cast<std::size_t>(done / panels.step_rows * panels.nr * panels.element);
            const auto pack_side = [&](const Side& side, const Runs& runs, Range range,
                                       const double* weight, unsigned char* memory) noexcept {
                each_run(runs, range, [&](Range run, std::size_t at) noexcept {
                    pack_columns(layout_, side.columns, run, row + static_cast<std::size_t>(done),
                                 count, weight, memory + offset, at);
                });
            };
            const double* weight = weights ? weights + done : nullptr;
            if (left_packed_)
                pack_side(task_->left, nonzero.left, left_, task_->transposed ? weight : nullptr,
                          left_of(scratch, block));
            pack_side(task_->right, nonzero.right, {right_.begin + in_place_, right_.end},
                      task_->transposed ? nullptr : weight, right_of(scratch, block));
        }
        if (!sums_columns()) return;
        const std::size_t columns = columns_in(weighted_runs(nonzero), weighted_range());
        for (std::size_t panel = 0; panel < layout_.count(columns); ++panel)
            task_->product.column_sums(weighted_panels(scratch, block) + panel * layout_.bytes,
                                       steps_of(panels, rows),
                                       column_sums_of(scratch) + panel * layout_.width);
    }

    // The block of rows after the present one, where it is needed next.
    Prefetch next_block(std::size_t row) const noexcept {
        if (chunk_blocks_ > 1) return {};
        return prefetch_rows(*task_->right.columns.begin(), row, block_rows());
    }

    // Adds the product of a group of columns over one block of rows, which begins at `row`. On the diagonal the vectors
    // that lie left of a tile's first row belong to the half that is mirrored.
    void multiply(Range left, Range right, std::size_t symmetric, std::size_t block,
                  std::size_t row, int rows, NonzeroSteps& nonzero_steps, Prefetch& prefetch,
                  unsigned char* scratch) const noexcept {
        const auto& product = task_->product;
        const auto lanes = static_cast<std::size_t>(product.lanes);
        const int steps = steps_of(product.panels, rows);
        // One of the tiles that share a panel fetches the next one, the others have a line of its next rows to fetch.
        const std::size_t tiles = (left.size() + mr_ - 1) / mr_;
        const std::size_t slowly = (cache_line + tiles - 2) / std::max<std::size_t>(1, tiles - 1);
        unsigned char* left_panels =
            left_packed_ ? left_of(scratch, block) : right_of(scratch, block);
        const ConstMatrix& A = *task_->right.columns.begin();
        for (std::size_t j = right.begin; j < right.end; j += layout_.width) {
            const bool in_place = j < in_place_;
            const std::size_t end = std::min(j + layout_.width, right.end);
            const auto values_of = [&](std::size_t from) noexcept {
                return in_place ? A.at(row, right_.begin + from)
                                : layout_.column(right_of(scratch, block), from - in_place_);
            };
            const std::ptrdiff_t stride =
                in_place ? A.row_stride / product.panels.element : product.panels.nr;
            const auto vectors_from = [&](std::size_t from) noexcept {
                return static_cast<int>((end - from + lanes - 1) / lanes);
            };
            // The first columns meet every row of the left side, whose values may not be finite.
            int count = steps;
            if (j > 0 || task_->symmetric > 0)
                count = nonzero_steps.among(product, values_of(j), stride, vectors_from(j), steps);
            // What is read in place comes from afar: the first tiles fetch the columns after these, line by line. Where the
            // lines do not begin with a panel, half of what is wanted is there, and the panel's end is not.
            int fetched = in_place && end < in_place_ ? 0 : steps;
            for (std::size_t i = left.begin; i < left.end; i += mr_) {
                const std::size_t wanted = std::max(j, std::min(i, symmetric));
                if (wanted >= end) break;
                const std::size_t from = wanted / lanes * lanes;
                const unsigned char* values = values_of(from);
                Prefetch::Lines lines;
                if (fetched < steps) {
                    const auto first = static_cast<std::size_t>(std::min(fetched, steps - count));
                    lines = {A.at(row + first, right_.begin + end + layout_.width - 1),
                             A.row_stride};
                    fetched += count;
                } else {
                    lines = prefetch.take(count, values, in_place ? slowly : cache_line);
                }
                const int vectors = vectors_from(from) - 1;
                double* sums = sums_of(scratch, i, from);
                if (count == steps)
                    tile_for(left.end - i, vectors)(layout_.column(left_panels, i), values, stride,
                                                    steps, sums, product.panels.nr, lines.first,
                                                    lines.stride);
                else
                    product.listed[vectors](layout_.column(left_panels, i), values, stride,
                                            nonzero_steps.list(), count, sums, product.panels.nr,
                                            lines.first, lines.stride);
            }
        }
    }

    // The smallest tile for so many columns of the left side.
    kernels::Tile tile_for(std::size_t columns, int vectors) const noexcept {
        const kernels::Product& product = task_->product;
        const std::size_t quarters = (4 * columns + mr_ - 1) / mr_;
        const bool narrow = quarters < 4 && product.narrow[quarters - 1];
        return narrow ? product.narrow[quarters - 1] : product.tile[vectors];
    }

    // Calls action(part, at) for the parts of a range of columns that begin at `at` in the panels and lie in one each.
    template <class F>
    void each_panel(Range columns, std::size_t at, F&& action) const {
        for (std::size_t c = columns.begin; c < columns.end;) {
            const std::size_t size =
                std::min(columns.end - c, layout_.width - (at + c - columns.begin) % layout_.width);
            action(Range{c, c + size}, at + c - columns.begin);
            c += size;
        }
    }

    // Adds the sums of row i of the left side with some columns of the right one, and offset times their column sums.
    void add_to_result(std::size_t i, Range columns, const double* sums, double offset,
                       const double* column_sums) const noexcept {
        const std::size_t symmetric = task_->symmetric;
        const Range of_G{std::max(columns.begin, i), std::min(columns.end, symmetric)};
        if (of_G.begin < of_G.end) {
            double* G = task_->G + i * task_->G_stride + of_G.begin;
            const std::size_t skipped = of_G.begin - columns.begin;
            add(of_G.size(), sums + skipped, offset, column_sums + skipped, G);
        }
        const Range of_C{std::max(columns.begin, symmetric), columns.end};
        if (of_C.begin >= of_C.end) return;
        sums += of_C.begin - columns.begin;
        column_sums += of_C.begin - columns.begin;
        const std::size_t column = of_C.begin - symmetric;
        if (!task_->transposed)
            return add(of_C.size(), sums, offset, column_sums,
                       task_->C + i * task_->C_stride + column);
        for (std::size_t c = 0; c < of_C.size(); ++c)
            task_->C[(column + c) * task_->C_stride + i] += sums[c];
    }

    static void add(std::size_t count, const double* sums, double offset, const double* column_sums,
                    double* out) noexcept {
        if (offset == 0)
            for (std::size_t c = 0; c < count; ++c) out[c] += sums[c];
        else
            for (std::size_t c = 0; c < count; ++c) out[c] += sums[c] + offset * column_sums[c];
    }

    std::size_t block_rows() const noexcept {
        return static_cast<std::size_t>(layout_.panels->block_rows);
    }
    std::size_t left_bytes() const noexcept {
        return left_packed_ ? layout_.size(left_.size()) : 0;
    }
    std::size_t block_bytes() const noexcept {
        return left_bytes() + layout_.size(right_.size() - in_place_);
    }
    std::size_t weights_offset() const noexcept { return chunk_blocks_ * block_bytes(); }
    std::size_t sums_offset() const noexcept {
        return weights_offset() + (task_->weight ? block_rows() * sizeof(double) : 0);
    }
    // The weights of a block of rows in float64, or null.
    const double* weights_of(std::size_t row, int rows, unsigned char* scratch) const noexcept {
        if (!task_->weight) return nullptr;
        const ConstMatrix& weight = *task_->weight;
        auto* converted = reinterpret_cast<double*>(scratch + weights_offset());
        table().dense_f64.copy_rows[weight.dtype](weight.at(row, 0), weight.row_stride,
                                                  weight.col_stride, static_cast<std::size_t>(rows),
                                                  1, converted, 1);
        return converted;
    }
    // The products, then the sums of columns.
    std::size_t products() const noexcept {
        return round_up(left_.size(), mr_) * layout_.padded(right_.size());
    }
    std::size_t sums_bytes() const noexcept {
        const std::size_t columns = sums_columns() ? layout_.padded(weighted_range().size()) : 0;
        return (products() + columns) * sizeof(double);
    }
    unsigned char* left_of(unsigned char* scratch, std::size_t block) const noexcept {
        return scratch + block * block_bytes();
    }
    unsigned char* right_of(unsigned char* scratch, std::size_t block) const noexcept {
        return left_of(scratch, block) + left_bytes();
    }
    double* sums_of(unsigned char* scratch) const noexcept {
        return reinterpret_cast<double*>(scratch + sums_offset());
    }
    // The sum of column i of the left side and column j of the right one. The sums of a tile lie together.
    double* sums_of(unsigned char* scratch, std::size_t i, std::size_t j) const noexcept {
        return sums_of(scratch) + i / mr_ * mr_ * layout_.padded(right_.size()) +
               (j / layout_.width * mr_ + i % mr_) * layout_.width + j % layout_.width;
    }
    double* column_sums_of(unsigned char* scratch) const noexcept {
        return sums_of(scratch) + products();
    }

    static constexpr int packed_rows = 16;  // whole elements of every product

    const Task* task_;
    Range left_;
    Range right_;
    PanelLayout layout_;
    std::size_t mr_;
    std::size_t chunk_blocks_;
    std::size_t in_place_;  // columns of the right side that are read where they lie
    bool diagonal_;         // the left side's columns are the right side's first
    bool left_packed_;
    bool adds_column_sums_;  // of the parts that see the weighted side, the first one does
};

using Group = std::vector<Part>;  // parts that share one pass over the rows

std::size_t scratch_bytes(const Group& group) noexcept {
    std::size_t bytes = 0;
    for (const Part& part : group) bytes += part.scratch_bytes();
    return bytes;
}

// Rows that all parts of a group take before the next ones are read: of all the largest chunk.
std::size_t chunk_rows(const Group& group) noexcept {
    std::size_t rows = 0;
    for (const Part& part : group) rows = std::max(rows, part.chunk_rows());
    return rows;
}

std::vector<Group> plan(const std::vector<Task>& tasks) {
    std::vector<Group> groups;
    for (std::size_t index = 0; index < tasks.size(); ++index) {
        const Task& task = tasks[index];
        const std::size_t rows = task.left.columns.width(), columns = task.right.columns.width();
        for (std::size_t i = 0; i < rows; i += block_columns)
            for (std::size_t j = 0; j < columns; j += block_columns) {
                const Range left{i, std::min(i + block_columns, rows)};
                const Range right{j, std::min(j + block_columns, columns)};
                if (right.end <= std::min(i, task.symmetric)) continue;
                const Part part(tasks, index, left, right);
                if (groups.empty() ||
                    scratch_bytes(groups.back()) + part.scratch_bytes() > scratch_limit)
                    groups.emplace_back();
                groups.back().push_back(part);
            }
    }
    return groups;
}

double multiply_adds(const std::vector<Task>& tasks, std::size_t rows) noexcept {
    double total = 0;
    for (const Task& task : tasks)
        total += static_cast<double>(rows) * static_cast<double>(task.left.columns.width()) *
                 static_cast<double>(task.right.columns.width());
    return total;
}

// What a thread works with.
struct Worker {
    Worker(const ConstMatrix& A, const std::vector<Task>& tasks, std::size_t bytes)
        : nonzero_of_A(A, tasks.front().left.of_A + tasks.front().right.of_A > 0),
          nonzero(tasks.size()),
          scratch(bytes) {
        for (NonzeroSides& sides : nonzero) {
            sides.left.reserve(nonzero_of_A.most_runs() + 1);
            sides.right.reserve(nonzero_of_A.most_runs() + 1);
        }
    }

    NonzeroColumns nonzero_of_A;
    std::vector<NonzeroSides> nonzero;  // by task
    NonzeroSteps nonzero_steps;
    Buffer<unsigned char> scratch;
};

void run(const ConstMatrix& A, const std::vector<Task>& tasks, int n_threads) {
    const std::size_t rows = A.rows;
    int all_threads = threads_for_call(n_threads);
    if (multiply_adds(tasks, rows) < parallel_threshold) all_threads = 1;
    const std::vector<Group> groups = plan(tasks);
    const std::size_t slot_rows = rows_of_slot(rows, A.cols);
    const std::size_t slots = (rows + slot_rows - 1) / slot_rows;
    const std::size_t items = groups.size() * slots;
    n_threads =
        static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(all_threads), items));
    std::size_t bytes = 0, height = 0;
    for (const Task& task : tasks) height = std::max(height, task.left.columns.width());
    for (const Group& group : groups) bytes = std::max(bytes, scratch_bytes(group));
    // Where every thread has one item at most, the sums are added up when all are there, by all threads.
    const bool at_once = n_threads > 1 && items <= static_cast<std::size_t>(n_threads);
    std::vector<Worker> workers;
    workers.reserve(static_cast<std::size_t>(n_threads));
    for (int thread = 0; thread < n_threads; ++thread) workers.emplace_back(A, tasks, bytes);
    std::vector<std::atomic<std::size_t>> turn(groups.size());

    // Calls action(part, nonzero, scratch) for the parts of an item.
    const auto each = [&](std::size_t item, Worker& worker, auto&& action) noexcept {
        unsigned char* at = worker.scratch.data();
        for (const Part& part : groups[item / slots]) {
            action(part, worker.nonzero[part.task_index], at);
            at += part.scratch_bytes();
        }
    };
    const auto sum = [&](std::size_t item, Worker& worker) noexcept {
        const Group& group = groups[item / slots];
        const std::size_t slot = item % slots;
        const Range slot_range{slot * slot_rows, std::min(rows, (slot + 1) * slot_rows)};
        const Runs& nonzero_of_A = worker.nonzero_of_A.among(slot_range);
        for (std::size_t task = 0; task < tasks.size(); ++task) {
            tasks[task].left.find_runs(nonzero_of_A, worker.nonzero[task].left);
            tasks[task].right.find_runs(nonzero_of_A, worker.nonzero[task].right);
        }
        each(item, worker,
             [](const Part& part, const NonzeroSides& nonzero, unsigned char* at) noexcept {
                 part.start(nonzero, at);
             });
        for (std::size_t row = slot_range.begin; row < slot_range.end; row += chunk_rows(group)) {
            const std::size_t count = std::min(chunk_rows(group), slot_range.end - row);
            each(item, worker,
                 [&](const Part& part, const NonzeroSides& nonzero, unsigned char* at) noexcept {
                     for (std::size_t done = 0; done < count; done += part.chunk_rows())
                         part.add_rows(nonzero, worker.nonzero_steps, row + done,
                                       std::min(part.chunk_rows(), count - done), at);
                 });
        }
    };
    const auto add = [&](std::size_t item, Worker& worker, Range some) noexcept {
        each(item, worker,
             [&](const Part& part, const NonzeroSides& nonzero, unsigned char* at) noexcept {
                 part.finish(nonzero, at, some);
             });
    };
    if (at_once) {
        parallel_for(n_threads, items,
                     [&](std::size_t item, int) noexcept { sum(item, workers[item]); });
        parallel_for(all_threads, (height + added_rows - 1) / added_rows,
                     [&](std::size_t block, int) noexcept {
                         const Range some{block * added_rows, (block + 1) * added_rows};
                         for (std::size_t item = 0; item < items; ++item)
                             add(item, workers[item], some);
                     });
        return;
    }
    parallel_for(n_threads, items, [&](std::size_t item, int thread) noexcept {
        const std::size_t slot = item % slots;
        std::atomic<std::size_t>& turn_of_group = turn[item / slots];
        Worker& worker = workers[static_cast<std::size_t>(thread)];
        sum(item, worker);
        for (std::size_t now; (now = turn_of_group.load(std::memory_order_acquire)) != slot;)
            turn_of_group.wait(now, std::memory_order_acquire);
        add(item, worker, {0, height});
        turn_of_group.store(slot + 1, std::memory_order_release);
        turn_of_group.notify_all();
    });
}

// The arithmetic that loses nothing of either matrix: float32 holds bytes and float32, float64 everything.
const kernels::Product& float_product(DType a, DType b) {
    return fits_float(a) && fits_float(b) ? table().f32 : table().f64;
}

const kernels::Product& gram_product(DType a, bool weighted) {
    return a == DType::u8 && !weighted ? table().u8 : float_product(a, a);
}

// Where a product can read whole vectors of a matrix: of its own type, and in rows that do not all fall into a few sets of
// the second cache.
bool is_panel_like(const ConstMatrix& A, const kernels::Product& product) noexcept {
    return size_of(A.dtype) == product.panels.element && readable_in_place(A) &&
           A.row_stride % 8192 != 0;
}

// C = AᵀWD and D's column sums. The wider matrix is on the right, where nothing is changed on the way: it may be read
// where it lies.
Task cross_task(const ConstMatrix& A, const ConstMatrix& D,
                const std::optional<ConstMatrix>& weight, double* C, double* column_sums) {
    const kernels::Product& product = float_product(A.dtype, D.dtype);
    const bool transposed = D.cols < A.cols;
    const bool in_place = transposed && is_panel_like(A, product);
    // What is read in place cannot be left out.
    Side left{Columns().append(A), in_place ? 0 : A.cols}, right{Columns().append(D), 0};
    if (transposed) std::swap(left, right);
    return {.product = product,
            .left = left,
            .right = right,
            .symmetric = 0,
            .weight = weight,
            .G = nullptr,
            .G_stride = 0,
            .C = C,
            .C_stride = D.cols,
            .transposed = transposed,
            .column_sums = column_sums,
            .in_place = in_place};
}

void check(const ConstMatrix& A, const ConstMatrix* B, const GramOptions& options) {
    if (A.cols == 0) throw std::invalid_argument("A has no columns");
    if (B && A.rows != B->rows)
        throw std::invalid_argument("A has " + std::to_string(A.rows) + " rows, its partner " +
                                    std::to_string(B->rows));
    if (!options.scale.empty() && options.scale.size() != A.cols)
        throw std::invalid_argument("A has " + std::to_string(A.cols) + " columns, scale " +
                                    std::to_string(options.scale.size()) + " factors");
}

// The sum of the weights as a product in float32 (`narrow`) or float64 takes them.
double total_weight(const std::optional<ConstMatrix>& weight, std::size_t rows, bool narrow) {
    if (!weight) return static_cast<double>(rows);
    constexpr std::size_t block = 256;
    double values[block];
    double total = 0;
    for (std::size_t row = 0; row < rows; row += block) {
        const std::size_t count = std::min(block, rows - row);
        table().dense_f64.copy_rows[weight->dtype](weight->at(row, 0), weight->row_stride,
                                                   weight->col_stride, count, 1, values, 1);
        double sum = 0;
        for (std::size_t k = 0; k < count; ++k)
            sum += narrow ? static_cast<double>(static_cast<float>(values[k])) : values[k];
        total += sum;
    }
    return total;
}

// What centring makes of a sum of products, given the sums of its two columns. Integers lose nothing before the division.
double centred(double sum, double of_left, double of_right, double weight) noexcept {
    return (weight * sum - of_left * of_right) / weight;
}

void scale_row(double factor, double* row, std::size_t count) noexcept {
    for (std::size_t j = 0; j < count; ++j) row[j] *= factor;
}

// Large ones by all threads: their pages are new.
void clear(double* values, std::size_t count, int n_threads) {
    constexpr std::size_t piece = 1u << 16;
    n_threads = count < 4 * piece ? 1 : threads_for_call(n_threads);
    parallel_for(n_threads, (count + piece - 1) / piece, [=](std::size_t item, int) noexcept {
        std::fill_n(values + item * piece, std::min(piece, count - item * piece), 0.0);
    });
}

void mirror(double* G, std::size_t n, int n_threads) {
    constexpr std::size_t block = 32;  // both blocks of a transposition stay in the first cache
    n_threads = static_cast<double>(n * n) < parallel_threshold ? 1 : threads_for_call(n_threads);
    parallel_for(n_threads, (n + block - 1) / block, [=](std::size_t item, int) noexcept {
        const std::size_t i0 = item * block;
        for (std::size_t j0 = i0; j0 < n; j0 += block)
            for (std::size_t i = i0; i < std::min(i0 + block, n); ++i)
                for (std::size_t j = std::max(j0, i + 1); j < std::min(j0 + block, n); ++j)
                    G[j * n + i] = G[i * n + j];
    });
}

}  // namespace

void gram(const ConstMatrix& A, const std::optional<ConstMatrix>& B, const GramOptions& options,
          double* G, double* C) {
    check(A, B ? &*B : nullptr, options);
    const auto& weight = options.sample_weight;
    const std::size_t n = A.cols, stride = n + (options.bias ? 1 : 0), m = B ? B->cols : 0;
    std::vector<double> sums(options.bias || options.center ? n + m : 0);
    double* const sums_of_A = sums.empty() ? nullptr : sums.data();
    double* const sums_of_B = sums.empty() ? nullptr : sums.data() + n;
    const Side of_A{Columns().append(A), n};
    const kernels::Product& product = gram_product(A.dtype, weight.has_value());
    std::vector<Task> tasks = {{.product = product,
                                .left = of_A,
                                .right = of_A,
                                .symmetric = n,
                                .weight = weight,
                                .G = G,
                                .G_stride = stride,
                                .C = C,
                                .C_stride = m,
                                .transposed = false,
                                .column_sums = sums_of_A,
                                .in_place = false}};
    if (B) {
        const kernels::Product& cross_product = float_product(A.dtype, B->dtype);
        if (&cross_product == &product)
            tasks[0].right.columns.append(*B);
        else
            tasks.push_back(cross_task(A, *B, weight, C, sums_of_B));
        std::fill_n(C, stride * m, 0.0);
    }
    clear(G, stride * stride, options.n_threads);
    run(A, tasks, options.n_threads);

    const double total = sums.empty() ? 0 : total_weight(weight, A.rows, &product != &table().f64);
    if (options.center && total > 0) {
        for (std::size_t i = 0; i < n; ++i) {
            double* row = G + i * stride;
            for (std::size_t j = i; j < n; ++j)
                row[j] = centred(row[j], sums_of_A[i], sums_of_A[j], total);
            if (row[i] < 0) row[i] = 0;  // rounding, of a column that hardly varies
            for (std::size_t j = 0; j < m; ++j)
                C[i * m + j] = centred(C[i * m + j], sums_of_A[i], sums_of_B[j], total);
        }
        std::fill_n(sums_of_A, n, 0.0);
    }
    if (options.bias) {
        for (std::size_t i = 0; i < n; ++i) G[i * stride + n] = sums_of_A[i];
        G[n * stride + n] = total;
        std::copy_n(sums_of_B, m, C + n * m);
    }
    for (std::size_t i = 0; i < options.scale.size(); ++i) {
        scale_row(options.scale[i], G + i * stride + i, stride - i);
        for (std::size_t j = i; j < n; ++j) G[i * stride + j] *= options.scale[j];
        scale_row(options.scale[i], C + i * m, m);
    }
    mirror(G, stride, options.n_threads);
}

void cross(const ConstMatrix& A, const ConstMatrix& D, const GramOptions& options, double* C) {
    check(A, &D, options);
    if (options.center) throw std::invalid_argument("cross() does not centre");
    const std::size_t m = D.cols;
    std::fill_n(C, (A.cols + (options.bias ? 1 : 0)) * m, 0.0);
    run(A, {cross_task(A, D, options.sample_weight, C, options.bias ? C + A.cols * m : nullptr)},
        options.n_threads);
    for (std::size_t i = 0; i < options.scale.size(); ++i)
        scale_row(options.scale[i], C + i * m, m);
}

}  // namespace bpls
