// The search for zero columns: the bits of all rows are or-ed, and the search ends early when too few columns are zero.
#include "core/gram/nonzero_columns.hpp"

#include "core/dispatch.hpp"

namespace bpls::gram_detail {
namespace {

// A narrower matrix is multiplied faster than it is searched.
constexpr std::size_t fewest_columns = 64;
constexpr std::size_t sample_rows = 64;  // rows before the first decision to give up
// Rows between later decisions. A decision looks at all columns, which costs as much as merging a row or two.
constexpr std::size_t rows_between_decisions = 8 * sample_rows;
// At least 1/16 of the columns must be zero: skipping fewer saves less time than the search takes.
constexpr std::size_t inverse_zero_share = 16;

}  // namespace

NonzeroColumnSearch::NonzeroColumnSearch(const ConstMatrix& A, bool wanted)
    : A_(&A),
      row_bytes_(A.cols * static_cast<std::size_t>(size_of(A.dtype))),
      searches_(wanted && A.cols >= fewest_columns && A.col_stride == size_of(A.dtype)) {
    runs_.reserve(most_runs());
    if (searches_) bits_.resize(row_bytes_);
}

const Runs& NonzeroColumnSearch::among(Range rows) noexcept {
    runs_.assign(1, {0, A_->cols});
    if (!searches_ || rows.size() < sample_rows) return runs_;
    std::fill(bits_.begin(), bits_.end(), static_cast<unsigned char>(0));
    for (std::size_t row = rows.begin, next = row + sample_rows; row < rows.end;
         row = next, next += rows_between_decisions) {
        merge({row, std::min(next, rows.end)});
        if (mostly_nonzero()) return runs_;
    }
    collect();
    return runs_;
}

void NonzeroColumnSearch::merge(Range rows) noexcept {
    for (std::size_t row = rows.begin; row < rows.end; ++row)
        table().merge_bits(A_->at(row, 0), row_bytes_, bits_.data());
}

bool NonzeroColumnSearch::is_nonzero(std::size_t column) const noexcept {
    const auto size = static_cast<std::size_t>(size_of(A_->dtype));
    return std::any_of(bits_.data() + column * size, bits_.data() + (column + 1) * size,
                       [](unsigned char byte) noexcept { return byte != 0; });
}

bool NonzeroColumnSearch::mostly_nonzero() const noexcept {
    std::size_t nonzero = 0;
    for (std::size_t column = 0; column < A_->cols; ++column) nonzero += is_nonzero(column);
    return nonzero > A_->cols - A_->cols / inverse_zero_share;
}

void NonzeroColumnSearch::collect() noexcept {
    runs_.clear();
    for (std::size_t column = 0; column < A_->cols; ++column) {
        if (!is_nonzero(column)) continue;
        if (runs_.empty() || column > runs_.back().end + smallest_gap)
            runs_.push_back({column, column + 1});
        else
            runs_.back().end = column + 1;
    }
    if (runs_.empty()) runs_.push_back({0, 1});
}

}  // namespace bpls::gram_detail
