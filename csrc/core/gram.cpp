// Gram matrices and cross products, AᵀW [A B]. What a bias or a mean needs beyond that are the sums of columns, which
// come from the same panels.
//
// The rows are cut into slots of a fixed size and the columns into blocks of a fixed size, so the additions of every
// result happen in one order whatever the number of threads. A thread takes a slot, sums it into memory of its own, and
// adds that to the result when its turn has come.
#include "bpls/gram.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/dispatch.hpp"
#include "core/panels.hpp"
#include "core/threads.hpp"

namespace bpls {
namespace {

constexpr std::size_t block_columns = 1024;       // of either side of a product
constexpr std::size_t panels_limit = 6u << 20;    // bytes of packed rows per part
constexpr std::size_t scratch_limit = 12u << 20;  // bytes per thread for products that share a pass
constexpr std::size_t group_columns = 128;  // sums of a group squared stay in the second cache
constexpr std::ptrdiff_t short_row = 1024;  // bytes from row to row up to which A is read in place
constexpr std::size_t small_sums = 256u << 10;  // bytes of sums that do so without groups

// Rows of a slot: enough that summing dominates over adding up the slots, few enough to share among threads. No more
// threads than slots can work: 12 on 60000 x 784, 29 on 60000 x 100.
std::size_t rows_of_slot(std::size_t rows, std::size_t columns) noexcept {
    const std::size_t wanted = std::max<std::size_t>(2048, 6 * columns);
    const std::size_t slots = std::max<std::size_t>(1, rows / wanted);
    return round_up(std::max<std::size_t>(1, (rows + slots - 1) / slots),
                    kernels::integer_block_rows);
}

// One product over all rows: leftᵀ W right. The first `symmetric` columns of `right` are those of `left`: of their
// product only the upper triangle is computed, into G; the rest goes to C. `column_sums`, where not null, gets 1ᵀ W right.
struct Task {
    const kernels::Product& product;
    Columns left;
    Columns right;
    std::size_t symmetric;
    std::optional<ConstMatrix> weight;
    double* G;
    std::size_t G_stride;
    double* C;
    double* column_sums;
};

// A block of a task's result, and the sums of one slot for it. Its scratch memory holds the panels of a chunk of blocks
// of rows, then the sums.
class Part {
 public:
    Part(const Task& task, Range left, Range right) noexcept
        : task_(&task),
          left_(left),
          right_(right),
          left_layout_(left_panels(task.product)),
          right_layout_(right_panels(task.product)),
          stride_(right_layout_.padded(right.size())),
          chunk_blocks_(1),
          packed_from_(left.begin),
          with_column_sums_(task.column_sums && left.begin == 0) {
        // Where the sums outgrow the second cache and a panel serves several groups of them, several blocks of rows are
        // packed, and a group takes them all before the next one is touched.
        if (sums_bytes() > small_sums && right.size() > 2 * group_columns)
            chunk_blocks_ = std::clamp<std::size_t>(panels_limit / block_bytes(), 1, 8);
        // A tile reads its left side one value at a time: whole strips of a narrow matrix need no packing.
        if (is_panel_like(*task.left.begin(), task.product))
            packed_from_ = task.left.begin()->cols / left_layout_.width * left_layout_.width;
    }

    std::size_t scratch_bytes() const noexcept { return sums_offset() + sums_bytes(); }
    std::size_t chunk_rows() const noexcept { return chunk_blocks_ * block_rows(); }

    void start(unsigned char* scratch) const noexcept {
        std::memset(sums_of(scratch), 0, sums_bytes());
        // Packing leaves the lanes past the last column alone.
        for (std::size_t block = 0; block < chunk_blocks_; ++block) {
            std::memset(right_of(scratch, block) - left_layout_.bytes, 0, left_layout_.bytes);
            std::memset(left_of(scratch, block + 1) - right_layout_.bytes, 0, right_layout_.bytes);
        }
    }

    // Adds the products of at most chunk_rows() rows.
    void add_rows(std::size_t row, std::size_t rows, unsigned char* scratch) const noexcept {
        const std::size_t blocks = (rows + block_rows() - 1) / block_rows();
        const auto rows_of = [&](std::size_t block) noexcept {
            return static_cast<int>(std::min(block_rows(), rows - block * block_rows()));
        };
        for (std::size_t block = 0; block < blocks; ++block) {
            const std::size_t first = row + block * block_rows();
            pack_columns(left_layout_, task_->left, {packed_from_, left_.end}, first,
                         rows_of(block), nullptr,
                         left_of(scratch, block) + left_layout_.size(packed_from_ - left_.begin));
            pack_columns(right_layout_, task_->right, right_, first, rows_of(block),
                         weights_of(first, rows_of(block), scratch), right_of(scratch, block));
            if (with_column_sums_)
                for (std::size_t panel = 0; panel < right_layout_.count(right_.size()); ++panel)
                    task_->product.column_sums(
                        right_of(scratch, block) + panel * right_layout_.bytes,
                        steps_of(task_->product, rows_of(block)),
                        column_sums_of(scratch) + panel * right_layout_.width);
        }
        const std::size_t i_group = round_up(group_columns, left_layout_.width);
        const std::size_t j_group = round_up(group_columns, right_layout_.width);
        for (std::size_t j = 0; j < right_.size(); j += j_group)
            for (std::size_t i = 0; i < left_.size(); i += i_group)
                for (std::size_t block = 0; block < blocks; ++block)
                    multiply({i, std::min(i + i_group, left_.size())},
                             {j, std::min(j + j_group, right_.size())}, block,
                             row + block * block_rows(), rows_of(block), scratch);
    }

    void finish(unsigned char* scratch) const noexcept {
        const std::size_t symmetric = task_->symmetric;
        const std::size_t outputs = task_->right.width() - symmetric;
        const double* sums = sums_of(scratch);
        for (std::size_t i = left_.begin; i < left_.end; ++i, sums += stride_) {
            std::size_t j = std::max(right_.begin, std::min(i, symmetric));
            for (; j < std::min(right_.end, symmetric); ++j)
                task_->G[i * task_->G_stride + j] += sums[j - right_.begin];
            for (; j < right_.end; ++j)
                task_->C[i * outputs + j - symmetric] += sums[j - right_.begin];
        }
        if (with_column_sums_)
            for (std::size_t j = right_.begin; j < right_.end; ++j)
                task_->column_sums[j] += column_sums_of(scratch)[j - right_.begin];
    }

 private:
    // Where a tile can read a matrix as if it were a left panel: of the product's own type, in short rows (so all of it is
    // in the first block of columns).
    static bool is_panel_like(const ConstMatrix& A, const kernels::Product& product) noexcept {
        const std::ptrdiff_t size = size_of(A.dtype);
        return product.step_rows == 1 && size == product.element && readable_in_place(A) &&
               A.row_stride >= static_cast<std::ptrdiff_t>(A.cols) * size &&
               A.row_stride <= short_row;
    }

    // Adds the product of a group of columns over one block of rows.
    void multiply(Range left, Range right, std::size_t block, std::size_t row, int rows,
                  unsigned char* scratch) const noexcept {
        const int steps = steps_of(task_->product, rows);
        const ConstMatrix& A = *task_->left.begin();
        for (std::size_t j = right.begin; j < right.end; j += right_layout_.width) {
            const unsigned char* right_panel =
                right_of(scratch, block) + j / right_layout_.width * right_layout_.bytes;
            for (std::size_t i = left.begin; i < left.end; i += left_layout_.width) {
                if (below_diagonal(i, j)) break;
                const bool packed = left_.begin + i >= packed_from_;
                task_->product.tile(
                    packed ? left_of(scratch, block) + i / left_layout_.width * left_layout_.bytes
                           : A.at(row, left_.begin + i),
                    packed ? task_->product.mr : A.row_stride / size_of(A.dtype), right_panel,
                    steps, sums_of(scratch) + i * stride_ + j,
                    static_cast<std::ptrdiff_t>(stride_));
            }
        }
    }

    // A tile whose columns all lie left of its first row belongs to the half that is mirrored. Below it in the same
    // panel there are only more of them.
    bool below_diagonal(std::size_t i, std::size_t j) const noexcept {
        const std::size_t last_column = right_.begin + j + right_layout_.width;
        return last_column <= task_->symmetric && last_column <= left_.begin + i;
    }
    std::size_t block_rows() const noexcept {
        return static_cast<std::size_t>(task_->product.block_rows);
    }
    std::size_t block_bytes() const noexcept {
        return left_layout_.size(left_.size()) + right_layout_.size(right_.size());
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
        table().dense_f64.copy_rows[static_cast<int>(weight.dtype)](
            weight.at(row, 0), weight.row_stride, weight.col_stride, static_cast<std::size_t>(rows),
            1, converted, 1);
        return converted;
    }
    // The sums of columns are the last row.
    std::size_t sums_rows() const noexcept {
        return left_layout_.padded(left_.size()) + (with_column_sums_ ? 1 : 0);
    }
    std::size_t sums_bytes() const noexcept { return sums_rows() * stride_ * sizeof(double); }
    unsigned char* left_of(unsigned char* scratch, std::size_t block) const noexcept {
        return scratch + block * block_bytes();
    }
    unsigned char* right_of(unsigned char* scratch, std::size_t block) const noexcept {
        return left_of(scratch, block) + left_layout_.size(left_.size());
    }
    double* sums_of(unsigned char* scratch) const noexcept {
        return reinterpret_cast<double*>(scratch + sums_offset());
    }
    double* column_sums_of(unsigned char* scratch) const noexcept {
        return sums_of(scratch) + (sums_rows() - 1) * stride_;
    }

    const Task* task_;
    Range left_;
    Range right_;
    PanelLayout left_layout_;
    PanelLayout right_layout_;
    std::size_t stride_;
    std::size_t chunk_blocks_;
    std::size_t packed_from_;  // the first column of the left side that is packed
    bool
        with_column_sums_;  // the parts of the first block of the left side take those of the right
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
    for (const Task& task : tasks)
        for (std::size_t i = 0; i < task.left.width(); i += block_columns)
            for (std::size_t j = 0; j < task.right.width(); j += block_columns) {
                const Range left{i, std::min(i + block_columns, task.left.width())};
                const Range right{j, std::min(j + block_columns, task.right.width())};
                if (right.end <= std::min(i, task.symmetric)) continue;
                const Part part(task, left, right);
                if (groups.empty() ||
                    scratch_bytes(groups.back()) + part.scratch_bytes() > scratch_limit)
                    groups.emplace_back();
                groups.back().push_back(part);
            }
    return groups;
}

double multiply_adds(const std::vector<Task>& tasks, std::size_t rows) noexcept {
    double total = 0;
    for (const Task& task : tasks)
        total += static_cast<double>(rows) * static_cast<double>(task.left.width()) *
                 static_cast<double>(task.right.width());
    return total;
}

void run(const std::vector<Task>& tasks, std::size_t rows, int n_threads) {
    n_threads = threads_for_call(n_threads);
    if (multiply_adds(tasks, rows) < parallel_threshold) n_threads = 1;
    const std::vector<Group> groups = plan(tasks);
    const std::size_t slot_rows = rows_of_slot(rows, tasks.front().left.width());
    const std::size_t slots = (rows + slot_rows - 1) / slot_rows;
    const std::size_t items = groups.size() * slots;
    n_threads = static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(n_threads), items));
    std::size_t bytes = 0;
    for (const Group& group : groups) bytes = std::max(bytes, scratch_bytes(group));
    std::vector<Buffer<unsigned char>> scratch;
    scratch.reserve(static_cast<std::size_t>(n_threads));
    for (int thread = 0; thread < n_threads; ++thread) scratch.emplace_back(bytes);
    std::vector<std::atomic<std::size_t>> turn(groups.size());

    parallel_for(n_threads, items, [&](std::size_t item, int thread) noexcept {
        const std::size_t slot = item % slots;
        const Group& group = groups[item / slots];
        std::atomic<std::size_t>& turn_of_group = turn[item / slots];
        unsigned char* memory = scratch[static_cast<std::size_t>(thread)].data();
        const auto each = [&](auto&& action) {
            unsigned char* at = memory;
            for (const Part& part : group) {
                action(part, at);
                at += part.scratch_bytes();
            }
        };
        each([](const Part& part, unsigned char* at) { part.start(at); });
        const std::size_t end = std::min(rows, (slot + 1) * slot_rows);
        for (std::size_t row = slot * slot_rows; row < end; row += chunk_rows(group)) {
            const std::size_t count = std::min(chunk_rows(group), end - row);
            each([&](const Part& part, unsigned char* at) {
                for (std::size_t done = 0; done < count; done += part.chunk_rows())
                    part.add_rows(row + done, std::min(part.chunk_rows(), count - done), at);
            });
        }
        for (std::size_t now; (now = turn_of_group.load(std::memory_order_acquire)) != slot;)
            turn_of_group.wait(now, std::memory_order_acquire);
        each([](const Part& part, unsigned char* at) { part.finish(at); });
        turn_of_group.store(slot + 1, std::memory_order_release);
        turn_of_group.notify_all();
    });
}

// The arithmetic that loses nothing of either matrix: float32 holds bytes and float32, float64 everything.
const kernels::Product& float_product(DType a, DType b) {
    const bool narrow = a != DType::f64 && b != DType::f64;
    return narrow ? table().f32 : table().f64;
}

const kernels::Product& gram_product(DType a, bool weighted) {
    return a == DType::u8 && !weighted ? table().u8 : float_product(a, a);
}

void check(const ConstMatrix& A, const ConstMatrix* B, const GramOptions& options) {
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
        table().dense_f64.copy_rows[static_cast<int>(weight->dtype)](
            weight->at(row, 0), weight->row_stride, weight->col_stride, count, 1, values, 1);
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

void mirror(double* G, std::size_t n) noexcept {
    constexpr std::size_t block = 32;  // both blocks of a transposition stay in the first cache
    for (std::size_t i0 = 0; i0 < n; i0 += block)
        for (std::size_t j0 = i0; j0 < n; j0 += block)
            for (std::size_t i = i0; i < std::min(i0 + block, n); ++i)
                for (std::size_t j = std::max(j0, i + 1); j < std::min(j0 + block, n); ++j)
                    G[j * n + i] = G[i * n + j];
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
    const Columns left = Columns().append(A);
    const kernels::Product& product = gram_product(A.dtype, weight.has_value());
    std::vector<Task> tasks = {{product, left, left, n, weight, G, stride, C, sums_of_A}};
    if (B) {
        const kernels::Product& cross_product = float_product(A.dtype, B->dtype);
        if (&cross_product == &product)
            tasks[0].right.append(*B);
        else
            tasks.push_back(
                {cross_product, left, Columns().append(*B), 0, weight, nullptr, 0, C, sums_of_B});
        std::fill_n(C, stride * m, 0.0);
    }
    std::fill_n(G, stride * stride, 0.0);
    run(tasks, A.rows, options.n_threads);

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
    mirror(G, stride);
}

void cross(const ConstMatrix& A, const ConstMatrix& D, const GramOptions& options, double* C) {
    check(A, &D, options);
    if (options.center) throw std::invalid_argument("cross() does not centre");
    const std::size_t m = D.cols;
    std::fill_n(C, (A.cols + (options.bias ? 1 : 0)) * m, 0.0);
    run({{float_product(A.dtype, D.dtype), Columns().append(A), Columns().append(D), 0,
          options.sample_weight, nullptr, 0, C, options.bias ? C + A.cols * m : nullptr}},
        A.rows, options.n_threads);
    for (std::size_t i = 0; i < options.scale.size(); ++i)
        scale_row(options.scale[i], C + i * m, m);
}

}  // namespace bpls
