// Rows become row blocks, columns result blocks, and result blocks groups whose scratch memory fits together. Where a sum is
// rounded, the plan does not depend on the number of threads.
#include "core/gram/plan.hpp"

#include <algorithm>

namespace bpls::gram_detail {
namespace {

constexpr std::size_t block_columns = 1024;       // of either side of a result block
constexpr std::size_t scratch_limit = 12u << 20;  // bytes per thread for blocks that share a pass

// Rows of a row block: enough that summing takes much longer than adding the sums to the result, few enough that threads
// have something to share (`shared`). No more threads than row blocks can work: 12 on 60000 x 784, 29 on 60000 x 100, 4 on
// 5000 rows of either, 2 on 1000 rows, or on 384 wide ones.
std::size_t rows_of_row_block(std::size_t rows, std::size_t columns, bool shared) noexcept {
    constexpr std::size_t fewest_wanted = 2048;  // rows, whatever the number of columns
    constexpr std::size_t per_column = 6;  // rows: a column has as many sums as there are columns
    constexpr std::size_t wide = 256;  // columns from which on fewer rows are worth a second thread
    constexpr std::size_t shared_wide = 384, shared_narrow = 512;  // rows for a second thread
    // From this many row blocks on, blocks are rounded up to many rows: one that ends later hardly delays the result.
    constexpr std::size_t many = 8;
    constexpr std::size_t even = 64;  // rows to which a few row blocks are rounded up

    const std::size_t wanted = std::max(fewest_wanted, per_column * columns);
    const std::size_t fewest_shared = columns < wide ? shared_narrow : shared_wide;
    const std::size_t fewest_blocks = !shared || rows < fewest_shared ? 1
                                      : rows < fewest_wanted          ? 2
                                                                      : 4;
    const std::size_t blocks = std::max(fewest_blocks, rows / wanted);
    const std::size_t block_rows = std::max<std::size_t>(1, (rows + blocks - 1) / blocks);
    return std::min(kernels::integer_sum_rows,
                    round_up(block_rows, blocks < many ? even : kernels::integer_block_rows));
}

// Whether the sums of all tasks are exact, so that they are the same however the rows are cut.
bool all_exact(const std::vector<ProductTask>& tasks) noexcept {
    return std::all_of(tasks.begin(), tasks.end(),
                       [](const ProductTask& task) noexcept { return task.product.integer_sums; });
}

std::vector<Group> group_blocks(const std::vector<ProductTask>& tasks) {
    std::vector<Group> groups;
    for (std::size_t index = 0; index < tasks.size(); ++index) {
        const ProductTask& task = tasks[index];
        const std::size_t rows = task.left.columns.width(), columns = task.right.columns.width();
        for (std::size_t i = 0; i < rows; i += block_columns)
            for (std::size_t j = 0; j < columns; j += block_columns) {
                const Range left{i, std::min(i + block_columns, rows)};
                const Range right{j, std::min(j + block_columns, columns)};
                if (right.end <= std::min(i, task.symmetric)) continue;  // below the diagonal
                const ResultBlock block(task, index, left, right);
                if (groups.empty() ||
                    scratch_bytes(groups.back()) + block.scratch_bytes() > scratch_limit)
                    groups.emplace_back();
                groups.back().push_back(block);
            }
    }
    return groups;
}

}  // namespace

std::size_t scratch_bytes(const Group& group) noexcept {
    std::size_t bytes = 0;
    for (const ResultBlock& block : group) bytes += block.scratch_bytes();
    return bytes;
}

std::size_t chunk_rows(const Group& group) noexcept {
    std::size_t rows = 0;
    for (const ResultBlock& block : group) rows = std::max(rows, block.chunk_rows());
    return rows;
}

Plan::Plan(const ConstMatrix& A, const std::vector<ProductTask>& tasks, int n_threads)
    : groups(group_blocks(tasks)),
      rows(A.rows),
      row_block_rows(rows_of_row_block(A.rows, A.cols, n_threads > 1 || !all_exact(tasks))),
      row_blocks((rows + row_block_rows - 1) / row_block_rows),
      scratch_bytes(0),
      result_rows(0),
      multiply_adds(0) {
    for (const ProductTask& task : tasks) {
        const std::size_t height = task.left.columns.width();
        result_rows = std::max(result_rows, height);
        multiply_adds += static_cast<double>(rows) * static_cast<double>(height) *
                         static_cast<double>(task.right.columns.width());
    }
    for (const Group& group : groups)
        scratch_bytes = std::max(scratch_bytes, gram_detail::scratch_bytes(group));
}

Range Plan::rows_of(std::size_t item) const noexcept {
    const std::size_t begin = row_block_of(item) * row_block_rows;
    return {begin, std::min(rows, begin + row_block_rows)};
}

}  // namespace bpls::gram_detail
