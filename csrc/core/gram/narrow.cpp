// Items of rows are summed on their own, whatever the number of threads, and added in order.
#include "core/gram/narrow.hpp"

#include <algorithm>
#include <cstring>

#include "core/dense.hpp"
#include "core/gram/choose.hpp"
#include "core/gram/narrow_bytes.hpp"
#include "core/threads.hpp"

namespace bpls::gram_detail {
namespace {

// Rows that are copied at a time: both sides fit into the first cache.
constexpr std::size_t copied_rows = 64;
// Rows that tiles read in place at a time: several tiles find them in the first cache.
constexpr std::size_t tile_rows = 128;
// Bytes of the right side in an item of work, or multiply-adds if those are fewer rows, and the most items.
constexpr std::size_t item_bytes = 128u << 10;
constexpr std::size_t item_products = 1u << 17;
constexpr std::size_t most_items = 32;

// Columns of the left side that a thin product takes in one pass over the rows.
constexpr std::size_t most_at_once = 4;

template <class T>
bool readable_as(const Columns& columns) noexcept {
    return columns.end() - columns.begin() == 1 && columns.begin()->dtype == dtype_of<T>() &&
           readable_in_place(*columns.begin());
}

// The row weights if they belong to this side of the product, or null.
const ConstMatrix* weight_of(const DirectProduct& task, bool left) noexcept {
    return task.weight && task.transposed == left ? &*task.weight : nullptr;
}

// One side of the product: read in place, or copied block by block into rows of `stride` values.
template <class T>
class SideRows {
 public:
    SideRows(const Columns& columns, std::size_t width, bool contiguous,
             const ConstMatrix* weight) noexcept
        : columns_(&columns), weight_(weight) {
        const ConstMatrix& first = *columns.begin();
        const auto row = static_cast<std::ptrdiff_t>(columns.width() * sizeof(T));
        in_place_ = !weight && readable_as<T>(columns) && columns.width() >= width &&
                    (!contiguous || first.row_stride == row);
        stride_ = in_place_ ? first.row_stride / static_cast<std::ptrdiff_t>(sizeof(T))
                            : static_cast<std::ptrdiff_t>(std::max(width, columns.width()));
    }

    bool in_place() const noexcept { return in_place_; }
    std::ptrdiff_t stride() const noexcept { return stride_; }
    std::size_t width() const noexcept { return columns_->width(); }

    // Some rows, which are those of the matrix or a copy in `room`.
    const T* rows(std::size_t row, std::size_t count, T* room) const noexcept {
        if (in_place_) return reinterpret_cast<const T*>(columns_->begin()->at(row, 0));
        const auto stride = static_cast<std::size_t>(stride_);
        if (stride > width()) std::fill_n(room, count * stride, T(0));
        T* to = room;
        const auto copy = [&](const ConstMatrix& part, std::size_t rows,
                              std::size_t cols) noexcept {
            dense_kernels<T>().copy_rows[part.dtype](part.at(row, 0), part.row_stride,
                                                     part.col_stride, rows, cols, to, stride);
        };
        const ConstMatrix& first = *columns_->begin();
        // Contiguous rows are copied as one: short ones cost much more.
        if (stride == first.cols && first.col_stride == size_of(first.dtype) &&
            first.row_stride == first.col_stride * static_cast<std::ptrdiff_t>(first.cols))
            copy(first, 1, count * stride);
        else
            for (const ConstMatrix& part : *columns_) {
                copy(part, count, part.cols);
                to += part.cols;
            }
        if (weight_) apply_weights(row, count, room);
        return room;
    }

 private:
    void apply_weights(std::size_t row, std::size_t count, T* room) const noexcept {
        double weights[copied_rows];
        table().dense_f64.copy_rows[weight_->dtype](weight_->at(row, 0), weight_->row_stride,
                                                    weight_->col_stride, count, 1, weights, 1);
        for (std::size_t k = 0; k < count; ++k)
            for (std::size_t c = 0; c < width(); ++c)
                room[k * static_cast<std::size_t>(stride_) + c] *= static_cast<T>(weights[k]);
    }

    const Columns* columns_;
    const ConstMatrix* weight_;
    bool in_place_;
    std::ptrdiff_t stride_;
};

// The product of all rows. How it is summed depends on the number of columns: `grouped` with several rows in a vector, by
// tiles, or thin. The sums have rows of `stride_` values, one row per column of the left side; rotated sums have one row per
// distance between two columns.
template <class T>
class NarrowPass {
 public:
    explicit NarrowPass(const DirectProduct& task)
        : task_(task),
          kernels_(narrow_kernels<T>()),
          lanes_(static_cast<std::size_t>(kernels_.lanes)),
          mr_(static_cast<std::size_t>(kernels_.mr)),
          grouped_(task.right.width() <= lanes_),
          rotated_(grouped_ && task.symmetric > 0),
          thin_(!grouped_ && task.symmetric == 0 && task.left.width() <= most_thin_columns),
          // The first columns of a symmetric product's right side are the left side's.
          shared_(task.symmetric > 0 && !task.weight && (grouped_ || task.right.width() >= mr_)),
          left_(rotated_ ? task.right : task.left, grouped_ || thin_ ? 0 : mr_, grouped_,
                weight_of(task, true)),
          right_(task.right, 0, grouped_, weight_of(task, false)),
          width_(task.right.width()),
          height_(rotated_ ? width_ / 2 + 1 : task.left.width()),
          vectors_((width_ + lanes_ - 1) / lanes_),
          stride_(grouped_ ? lanes_ : vectors_ * lanes_),
          sum_rows_(grouped_ ? lanes_ : round_up(height_, thin_ ? kernels::max_lanes : mr_)),
          item_rows_(rows_of_items()),
          items_(std::max<std::size_t>(1, (task.rows + item_rows_ - 1) / item_rows_)),
          item_sums_(sum_rows_ * stride_),
          buffer_(items_ * item_sums_ * (thin_ ? 2 : 1)) {}

    void run(int n_threads) {
        const double products = static_cast<double>(task_.rows) *
                                static_cast<double>(task_.left.width()) *
                                static_cast<double>(width_);
        parallel_for(threads_for_work(n_threads, products), items_,
                     [&](std::size_t item, int) noexcept { sum(item); });
        double* const total = sums_of(0);
        for (std::size_t item = 1; item < items_; ++item)
            for (std::size_t s = 0; s < used_sums(); ++s) total[s] += sums_of(item)[s];
        write();
    }

 private:
    std::size_t rows_of_items() const noexcept {
        const std::size_t by_bytes = item_bytes / (width_ * sizeof(T)) + 1;
        const std::size_t by_products = item_products / (height_ * width_) + 1;
        const std::size_t fewest = std::min(by_bytes, by_products);
        return round_up(std::max(fewest, task_.rows / most_items + 1), kernels::block_rows);
    }

    // Of an item. Moving the sums of a thin product also reads rows that are not used.
    std::size_t used_sums() const noexcept { return (thin_ ? height_ : sum_rows_) * stride_; }
    double* sums_of(std::size_t item) noexcept { return buffer_.data() + item * item_sums_; }

    void sum(std::size_t item) noexcept {
        double* const sums = sums_of(item);
        std::fill_n(sums, used_sums(), 0.0);
        const bool copies = !right_.in_place() || (!shared_ && !left_.in_place());
        const std::size_t most = copies     ? copied_rows
                                 : grouped_ ? item_rows_
                                 : thin_    ? static_cast<std::size_t>(kernels::block_rows)
                                            : tile_rows;
        const std::size_t end = std::min(task_.rows, (item + 1) * item_rows_);
        for (std::size_t row = item * item_rows_; row < end; row += most)
            add(item, row, std::min(most, end - row), sums);
    }

    void add(std::size_t item, std::size_t row, std::size_t rows, double* sums) noexcept {
        // The rows of a wide right side are read in place.
        alignas(cache_line) T left_room[copied_rows * kernels::max_panel_columns];
        alignas(cache_line) T right_room[copied_rows * kernels::max_panel_columns];
        const T* right = right_.rows(row, rows, right_room);
        const T* left = shared_ ? right : left_.rows(row, rows, left_room);
        const std::ptrdiff_t left_stride = shared_ ? right_.stride() : left_.stride();
        const int count = static_cast<int>(rows);
        if (grouped_) {
            const auto quarter = static_cast<std::size_t>(kernels_.quarter);
            const std::size_t columns = rotated_ ? width_ : height_;
            kernels_.grouped[(height_ + quarter - 1) / quarter - 1](left, static_cast<int>(columns),
                                                                    right, static_cast<int>(width_),
                                                                    rotated_, count, sums);
        } else if (thin_) {
            double* const room = buffer_.data() + (items_ + item) * item_sums_;
            for (std::size_t i = 0; i < height_; i += most_at_once)
                kernels_.thin[std::min(most_at_once, height_ - i) - 1](
                    left + i, left_stride, right, right_.stride(), count, static_cast<int>(width_),
                    reinterpret_cast<T*>(room), sums + i * stride_,
                    static_cast<std::ptrdiff_t>(stride_));
        } else {
            add_tiles(left, left_stride, right, row, count, sums);
        }
    }

    // The last tile and the last vector end with the last column, so they overlap the ones before.
    void add_tiles(const T* left, std::ptrdiff_t left_stride, const T* right, std::size_t row,
                   int rows, double* sums) noexcept {
        const std::size_t last_vector = width_ - lanes_;
        Prefetch next;
        if (right_.in_place())
            next = prefetch_rows(*task_.right.begin(), row + static_cast<std::size_t>(rows),
                                 static_cast<std::size_t>(rows));
        for (std::size_t i = 0; i < sum_rows_; i += mr_) {
            const std::size_t from = first_row(i);
            const std::size_t first = task_.symmetric > 0 ? from / lanes_ : 0;
            const std::size_t begin = std::min(first * lanes_, last_vector);
            const auto lines = next.take(rows, right, cache_line);
            const auto& tiles = height_of_tile(i) == mr_ ? kernels_.tile : kernels_.half;
            tiles[vectors_ - first - 1](left + from, left_stride, right + begin, right_.stride(),
                                        static_cast<std::ptrdiff_t>(last_vector - begin), rows,
                                        sums + i * stride_ + first * lanes_,
                                        static_cast<std::ptrdiff_t>(stride_), lines.first,
                                        lines.stride);
        }
    }

    // The tile at row i of the sums: its height, and its first column of the left side.
    std::size_t height_of_tile(std::size_t i) const noexcept {
        return height_ > mr_ && height_ - i <= mr_ / 2 ? mr_ / 2 : mr_;
    }
    std::size_t first_row(std::size_t i) const noexcept {
        return height_ > mr_ ? std::min(i, height_ - height_of_tile(i)) : 0;
    }

    // ---- the result

    // The product of column i of the left side and column j of the right one, if grouped; i <= j where it is symmetric.
    double grouped_value(std::size_t i, std::size_t j) noexcept {
        const double* const sums = sums_of(0);
        std::size_t row = i, place = j;
        if (rotated_) {
            const std::size_t distance = j - i;
            row = std::min(distance, width_ - distance);
            place = row == distance ? i : j;
        }
        double total = 0;
        for (; place < lanes_ / width_ * width_; place += width_)
            total += sums[row * lanes_ + place];
        return total;
    }

    void write() noexcept {
        if (thin_) {
            // A single column of the result is as contiguous as a row.
            const bool in_columns = task_.transposed && task_.C_stride > 1;
            const auto place = in_columns ? task_.product.place_transposed : task_.product.place;
            return place(sums_of(0), static_cast<std::ptrdiff_t>(stride_),
                         static_cast<int>(height_), static_cast<int>(width_), kernels::no_diagonal,
                         0, nullptr, task_.C, static_cast<std::ptrdiff_t>(task_.C_stride), 0);
        }
        for (std::size_t i = 0; i < task_.left.width(); ++i) {
            if (grouped_) {
                write_row(i, {0, width_}, [&](std::size_t j) { return grouped_value(i, j); });
                continue;
            }
            const std::size_t last_row = sum_rows_ - mr_, last_column = stride_ - lanes_;
            const std::size_t row = i < last_row ? i : last_row + i - first_row(last_row);
            const double* const sums = sums_of(0) + row * stride_;
            const std::size_t overlap = stride_ - width_;
            write_row(i, {0, last_column}, [=](std::size_t j) { return sums[j]; });
            write_row(i, {last_column, width_}, [=](std::size_t j) { return sums[j + overlap]; });
        }
    }

    // Writes some columns of row i of the product, and of G also its column i.
    template <class Value>
    void write_row(std::size_t i, Range columns, Value value) noexcept {
        const std::size_t symmetric = task_.symmetric;
        for (std::size_t j = std::max(i, columns.begin); j < std::min(columns.end, symmetric); ++j)
            task_.G[i * symmetric + j] = task_.G[j * symmetric + i] = value(j);
        const std::size_t across = task_.transposed ? task_.C_stride : 1,
                          down = task_.transposed ? 1 : task_.C_stride;
        for (std::size_t j = std::max(symmetric, columns.begin); j < columns.end; ++j)
            task_.C[i * down + (j - symmetric) * across] = value(j);
    }

    const DirectProduct& task_;
    const kernels::Narrow<T>& kernels_;
    std::size_t lanes_;
    std::size_t mr_;
    bool grouped_;
    bool rotated_;
    bool thin_;
    bool shared_;
    SideRows<T> left_;
    SideRows<T> right_;
    std::size_t width_;   // columns of the right side
    std::size_t height_;  // rows of the sums that are used
    std::size_t vectors_;
    std::size_t stride_;
    std::size_t sum_rows_;
    std::size_t item_rows_;
    std::size_t items_;
    std::size_t item_sums_;
    Buffer<double> buffer_;  // the sums of all items, then the room of thin products
};

}  // namespace

void multiply_narrow(const DirectProduct& task, int n_threads) {
    if (&task.product == &table().u8 && has_narrow_bytes())
        multiply_narrow_bytes(task, n_threads);
    else if (&task.product == &table().f64)
        NarrowPass<double>(task).run(n_threads);
    else
        NarrowPass<float>(task).run(n_threads);
}

}  // namespace bpls::gram_detail
