// Items of rows are summed on their own and added; the sums are integers, so that any order gives the same bits.
#include "core/gram/narrow_bytes.hpp"

#include <algorithm>
#include <cstring>

#include "core/dispatch.hpp"
#include "core/threads.hpp"

namespace bpls::gram_detail {
namespace {

// Rows that are copied at a time if they are not contiguous.
constexpr std::size_t copied_rows = 256;
// Bytes of rows in an item of work, at least, and the most items.
constexpr std::size_t item_bytes = 32u << 10;
constexpr std::size_t most_items = 32;
// Multiply-adds in the time of one of the other products'.
constexpr double at_once = 8;
// A row of sums for every distance of two columns on a circle, and one for the sums of columns.
constexpr std::size_t most_sums = (kernels::max_list_lanes / 2 + 2) * kernels::max_list_lanes;

class BytesPass {
 public:
    explicit BytesPass(const DirectProduct& task)
        : task_(task),
          A_(*task.right.begin()),
          kernels_(table().narrow_u8),
          lanes_(static_cast<std::size_t>(kernels_.lanes)),
          columns_(A_.cols),
          distances_(columns_ / 2 + 1),
          item_rows_(std::max(item_bytes / columns_, task.rows / most_items) + 1),
          items_(std::max<std::size_t>(1, (task.rows + item_rows_ - 1) / item_rows_)),
          contiguous_((columns_ == 1 || A_.col_stride == 1) &&
                      A_.row_stride == static_cast<std::ptrdiff_t>(columns_)) {}

    void run(int n_threads) {
        alignas(cache_line) double total[most_sums];
        const auto columns = static_cast<double>(columns_);
        if (items_ == 1) {
            sum(0, total);
            return write(total);
        }
        Buffer<double> sums(items_ * most_sums);
        parallel_for_near(threads_for_work(n_threads, static_cast<double>(task_.rows) * columns *
                                                          columns / at_once),
                          items_, [&](std::size_t item, int) noexcept {
                              sum(item, sums.data() + item * most_sums);
                          });
        std::copy_n(sums.data(), used_sums(), total);
        for (std::size_t item = 1; item < items_; ++item)
            for (std::size_t s = 0; s < used_sums(); ++s)
                total[s] += sums.data()[item * most_sums + s];
        write(total);
    }

 private:
    std::size_t used_sums() const noexcept { return (distances_ + 1) * lanes_; }

    void sum(std::size_t item, double* sums) const noexcept {
        std::fill_n(sums, used_sums(), 0.0);
        const auto rotated = kernels_.rotated[distances_ - 1];
        const auto columns = static_cast<int>(columns_);
        const std::size_t first = item * item_rows_, end = std::min(task_.rows, first + item_rows_);
        if (contiguous_) return rotated(A_.at(first, 0), columns, end - first, sums);
        for (std::size_t row = first; row < end; row += copied_rows) {
            unsigned char rows[copied_rows * kernels::max_list_lanes];
            const std::size_t count = std::min(copied_rows, end - row);
            copy(row, count, rows);
            rotated(rows, columns, count, sums);
        }
    }

    void copy(std::size_t row, std::size_t count, unsigned char* to) const noexcept {
        for (std::size_t k = 0; k < count; ++k, to += columns_) {
            const unsigned char* const from = A_.at(row + k, 0);
            if (A_.col_stride == 1)
                std::memcpy(to, from, columns_);
            else
                for (std::size_t c = 0; c < columns_; ++c)
                    to[c] = from[static_cast<std::ptrdiff_t>(c) * A_.col_stride];
        }
    }

    void write(double* sums) const noexcept {
        const std::size_t n = columns_, stride = task_.symmetric;
        double* const column_sums = sums + distances_ * lanes_;
        // The rows of a group follow each other.
        for (std::size_t place = n; place + n <= lanes_; place += n)
            for (std::size_t r = 0; r <= distances_; ++r)
                for (std::size_t c = 0; c < n; ++c)
                    sums[r * lanes_ + c] += sums[r * lanes_ + place + c];
        for (std::size_t r = 0; r < distances_; ++r)
            for (std::size_t c = 0; c < n; ++c) {
                const std::size_t i = c + r < n ? c + r : c + r - n;
                task_.G[i * stride + c] = task_.G[c * stride + i] =
                    sums[r * lanes_ + c] + kernels_.left_offset * column_sums[c];
            }
        if (stride == n) return;
        for (std::size_t c = 0; c < n; ++c)
            task_.G[n * stride + c] = task_.G[c * stride + n] = column_sums[c];
        task_.G[n * stride + n] = static_cast<double>(task_.rows);
    }

    const DirectProduct& task_;
    const ConstMatrix& A_;
    const kernels::NarrowBytes& kernels_;
    std::size_t lanes_;
    std::size_t columns_;    // without the one of ones
    std::size_t distances_;  // of two columns on a circle
    std::size_t item_rows_;
    std::size_t items_;
    bool contiguous_;
};

}  // namespace

bool has_narrow_bytes() noexcept { return table().narrow_u8.lanes > 0; }

std::size_t most_narrow_bytes(const DirectProduct& task) noexcept {
    if (!has_narrow_bytes()) return static_cast<std::size_t>(table().narrow_f32.lanes);
    // A column of ones costs nothing: its products are the sums of the columns.
    const std::size_t ones = task.right.width() - task.right.begin()->cols;
    return static_cast<std::size_t>(table().narrow_u8.lanes) + ones;
}

void multiply_narrow_bytes(const DirectProduct& task, int n_threads) {
    BytesPass(task).run(n_threads);
}

}  // namespace bpls::gram_detail
