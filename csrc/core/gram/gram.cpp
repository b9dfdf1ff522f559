// Gram matrices and cross products, AᵀW [A B]: gram() and cross() choose the arithmetic, run the passes over the rows and
// finish the sums. A bias or a mean also needs the column sums, which come from the same panels.
#include "bpls/gram.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/dispatch.hpp"
#include "core/gram/choose.hpp"
#include "core/gram/direct.hpp"
#include "core/gram/finish.hpp"
#include "core/gram/in_place.hpp"
#include "core/gram/narrow.hpp"
#include "core/gram/narrow_bytes.hpp"
#include "core/gram/ordered_pass.hpp"

namespace bpls {
namespace {

using namespace gram_detail;

// The arithmetic that represents both matrices exactly: float32 holds bytes and float32, float64 everything.
const kernels::Product& float_product(DType a, DType b) {
    return fits_float(a) && fits_float(b) ? table().f32 : table().f64;
}

const kernels::Product& gram_product(DType a, bool weighted) {
    return a == DType::u8 && !weighted ? table().u8 : float_product(a, a);
}

// Whether tiles can read whole vectors of a matrix in place: it has the product's own type, and its rows do not all
// fall into a few sets of the second cache.
bool is_panel_like(const ConstMatrix& A, const kernels::Product& product) noexcept {
    // Bytes: rows at multiples of this share a few cache sets.
    constexpr std::ptrdiff_t colliding = 8192;
    return size_of(A.dtype) == product.panels.element && readable_in_place(A) &&
           A.row_stride % colliding != 0;
}

// C = AᵀWD and the column sums of D. The wider matrix is on the right: when the sides are swapped, that side is not
// weighted and may be read in place.
ProductTask cross_task(const ConstMatrix& A, const ConstMatrix& D,
                       const std::optional<ConstMatrix>& weight, double* C, double* column_sums) {
    const kernels::Product& product = float_product(A.dtype, D.dtype);
    const bool transposed = D.cols < A.cols;
    const bool in_place = transposed && is_panel_like(A, product);
    // No column of a matrix that is read in place can be left out.
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

// G = AᵀWA, and C = AᵀWB if B is given: in the same product if both need the same arithmetic, otherwise in a second one.
std::vector<ProductTask> gram_tasks(const ConstMatrix& A, const std::optional<ConstMatrix>& B,
                                    const std::optional<ConstMatrix>& weight,
                                    const GramSums& sums) {
    const Side of_A{Columns().append(A), A.cols};
    const kernels::Product& product = gram_product(A.dtype, weight.has_value());
    std::vector<ProductTask> tasks = {{.product = product,
                                       .left = of_A,
                                       .right = of_A,
                                       .symmetric = A.cols,
                                       .weight = weight,
                                       .G = sums.G,
                                       .G_stride = sums.stride,
                                       .C = sums.C,
                                       .C_stride = sums.m,
                                       .transposed = false,
                                       .column_sums = sums.sums_of_A,
                                       .in_place = false}};
    if (!B) return tasks;
    if (&float_product(A.dtype, B->dtype) == &product)
        tasks[0].right.columns.append(*B);
    else
        tasks.push_back(cross_task(A, *B, weight, sums.C, sums.sums_of_B));
    return tasks;
}

// A column of ones of A's type.
ConstMatrix ones(const ConstMatrix& A) noexcept {
    static constexpr std::uint8_t byte = 1;
    static constexpr float single = 1;
    static constexpr double number = 1;
    const void* one = A.dtype == DType::u8    ? static_cast<const void*>(&byte)
                      : A.dtype == DType::f32 ? static_cast<const void*>(&single)
                                              : static_cast<const void*>(&number);
    return {static_cast<const unsigned char*>(one), A.dtype, A.rows, 1, 0, 0};
}

Columns with_bias(const ConstMatrix& A, bool bias) noexcept {
    Columns columns;
    columns.append(A);
    if (bias) columns.append(ones(A));
    return columns;
}

// C = [A 1]ᵀWD. The wider matrix is on the right, where tiles are wide.
DirectProduct direct_cross(const ConstMatrix& A, const ConstMatrix& D, const GramOptions& options,
                           double* C) {
    Columns left = with_bias(A, options.bias), right = Columns().append(D);
    const bool transposed = right.width() < left.width();
    if (transposed) std::swap(left, right);
    return {.product = float_product(A.dtype, D.dtype),
            .left = left,
            .right = right,
            .symmetric = 0,
            .rows = A.rows,
            .weight = options.sample_weight,
            .G = nullptr,
            .C = C,
            .C_stride = D.cols,
            .transposed = transposed};
}

// G = [A 1]ᵀW[A 1], and C = [A 1]ᵀWB if B needs the same arithmetic.
DirectProduct direct_gram(const ConstMatrix& A, const std::optional<ConstMatrix>& B,
                          const GramOptions& options, double* G, double* C) {
    const Columns left = with_bias(A, options.bias);
    DirectProduct task{.product = gram_product(A.dtype, options.sample_weight.has_value()),
                       .left = left,
                       .right = left,
                       .symmetric = left.width(),
                       .rows = A.rows,
                       .weight = options.sample_weight,
                       .G = G,
                       .C = C,
                       .C_stride = B ? B->cols : 0,
                       .transposed = false};
    if (B && &float_product(A.dtype, B->dtype) == &task.product) task.right.append(*B);
    return task;
}

Way way_of(const DirectProduct& task) noexcept {
    const kernels::Panels& panels = task.product.panels;
    const bool in_double = &task.product == &table().f64;
    const int lanes = in_double ? table().narrow_f64.lanes : table().narrow_f32.lanes;
    const int tile = in_double ? table().narrow_f64.nv : table().narrow_f32.nv;
    return choose_way(
        shape_of(task),
        {.lanes = static_cast<std::size_t>(lanes),
         .narrow_columns = &task.product == &table().u8 ? most_narrow_bytes(task)
                                                        : static_cast<std::size_t>(tile * lanes),
         .value_bytes = static_cast<std::size_t>(panels.element / panels.step_rows),
         .sum_rows = task.product.integer_sums ? kernels::integer_sum_rows
                                               : std::numeric_limits<std::size_t>::max(),
         .copies = task.symmetric > 0 && has_left(task) ? std::size_t{2} : std::size_t{1}});
}

// Computes a product unless it is one for row blocks. Returns whether it did.
bool multiply_at_once(const DirectProduct& task, int n_threads) {
    switch (way_of(task)) {
        case Way::narrow:
        case Way::thin:
            multiply_narrow(task, n_threads);
            return true;
        case Way::in_place:
            multiply_in_place(task, n_threads);
            return true;
        case Way::direct:
            multiply_directly(task, n_threads);
            return true;
        case Way::blocked:
            break;
    }
    return false;
}

// `name` is what the caller calls B.
void check(const ConstMatrix& A, const ConstMatrix* B, const char* name,
           const GramOptions& options) {
    if (A.cols == 0) throw std::invalid_argument("A has no columns; expected at least one");
    if (B && A.rows != B->rows)
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(B->rows) +
                                    " rows; expected " + std::to_string(A.rows) + ", as A has");
    if (!options.scale.empty() && options.scale.size() != A.cols)
        throw std::invalid_argument("scale has " + std::to_string(options.scale.size()) +
                                    " factors; expected " + std::to_string(A.cols) +
                                    ", one for each column of A");
}

}  // namespace

void gram(const ConstMatrix& A, const std::optional<ConstMatrix>& B, const GramOptions& options,
          double* G, double* C) {
    check(A, B ? &*B : nullptr, "B", options);
    if (const DirectProduct task = direct_gram(A, B, options, G, C);
        !options.center && multiply_at_once(task, options.n_threads)) {
        if (B && task.right.width() == task.left.width())
            cross(A, *B, {options.bias, options.sample_weight, options.n_threads}, C);
        if (options.scale.empty()) return;
        scale_columns_of_A({G, A.cols, task.symmetric, C, B ? B->cols : 0, nullptr, nullptr, 0},
                           options.scale);
        return mirror(G, task.symmetric, options.n_threads);
    }
    const auto& weight = options.sample_weight;
    const std::size_t n = A.cols, stride = n + (options.bias ? 1 : 0), m = B ? B->cols : 0;
    std::vector<double> column_sums(options.bias || options.center ? n + m : 0);
    GramSums sums{G, n, stride, C, m, nullptr, nullptr, 0};
    if (!column_sums.empty()) {
        sums.sums_of_A = column_sums.data();
        sums.sums_of_B = column_sums.data() + n;
    }
    const std::vector<ProductTask> tasks = gram_tasks(A, B, weight, sums);
    if (B) std::fill_n(C, stride * m, 0.0);
    clear(G, stride * stride, options.n_threads);
    ordered_pass(A, tasks, options.n_threads);

    if (!column_sums.empty())
        sums.total_weight = total_weight(weight, A.rows, &tasks[0].product != &table().f64);
    if (options.center && sums.total_weight > 0) centre(sums);
    if (options.bias) append_bias(sums);
    scale_columns_of_A(sums, options.scale);
    mirror(G, stride, options.n_threads);
}

void cross(const ConstMatrix& A, const ConstMatrix& D, const GramOptions& options, double* C) {
    check(A, &D, "D", options);
    if (options.center)
        throw std::invalid_argument("center is true; expected false, cross() does not centre");
    const std::size_t m = D.cols;
    if (m == 0) return;
    // Without the bias, both sides may be read in place; with it, A is two matrices.
    if (const DirectProduct task = direct_cross(A, D, {.n_threads = options.n_threads}, C);
        options.bias && !options.sample_weight && way_of(task) == Way::in_place) {
        multiply_in_place(task, options.n_threads);
        cross(ones(A), D, {.n_threads = options.n_threads}, C + A.cols * m);
    } else if (!multiply_at_once(direct_cross(A, D, options, C), options.n_threads)) {
        std::fill_n(C, (A.cols + (options.bias ? 1 : 0)) * m, 0.0);
        ordered_pass(
            A,
            {cross_task(A, D, options.sample_weight, C, options.bias ? C + A.cols * m : nullptr)},
            options.n_threads);
    }
    for (std::size_t i = 0; i < options.scale.size(); ++i)
        scale_row(options.scale[i], C + i * m, m);
}

}  // namespace bpls
