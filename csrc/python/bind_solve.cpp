// solve, solve_layer and solve_batched.
#include <cmath>

#include "arguments.hpp"
#include "core/batch.hpp"
#include "fast_call.hpp"
#include "gil.hpp"
#include "output.hpp"
#include "register.hpp"

namespace bpls::python {
namespace {

// Throws if G and C are finite and their solution is not: the quotient of their scales overflows.
void check_solution(WholeOutput& W) {
    if (!all_finite(W.data(), W.size()))
        throw NonFiniteError("C is too large for G: the solution overflows float64; scale them");
}

py::object solve_(py::handle G_, py::handle C_, py::handle eps, py::handle relative, py::handle out,
                  py::handle check_finite_, py::handle n_threads) {
    const py::array G_array = as_array("G", G_);
    const ConstMatrix G = as_matrix("G", G_array);
    const py::array C_array = as_array("C", C_);
    const ConstMatrix C = as_matrix("C", C_array);
    check_square("G", G);
    check_rows("C", C, G.rows, "as many as G");
    check_size("G", G.rows, G.rows);
    check_size("C", G.rows, C.cols);
    const Ridge ridge = as_ridge(eps, relative);
    const bool checks = as_flag("check_finite", check_finite_);
    const int threads = as_threads(n_threads);

    WholeOutput W("out", out, shape_of(C_array), checks);
    W.check_apart("G", G_array);
    W.check_apart("C", C_array);
    try {
        const WithoutGil released(G.rows, G.rows, G.rows + C.cols);
        if (checks) {
            check_symmetric("G", G, threads);
            check_finite("C", C, threads);
        }
        solve(G, C, ridge, W.data(), threads);
        if (checks) check_solution(W);
        W.finish();
    } catch (const NotPositiveDefinite& error) {
        raise_singular(error, ridge);
    }
    return W.array();
}

py::object solve_layer_(py::handle A_, py::handle B_, py::handle bias_, py::handle eps,
                        py::handle relative, py::handle sample_weight, py::handle out,
                        py::handle check_finite_, py::handle n_threads) {
    const py::array A_array = as_array("A", A_, Accepts::all_types);
    const ConstMatrix A = as_matrix("A", A_array);
    const bool bias = as_flag("bias", bias_);
    const bool checks = as_flag("check_finite", check_finite_);
    const py::array B_array = as_array("B", B_);
    const ConstMatrix B = as_matrix("B", B_array);
    const std::size_t n = A.cols + (bias ? 1 : 0);
    check_rows("B", B, A.rows, "one per row of A");
    check_size("A", n, n);
    check_size("B", n, B.cols);
    const GramWeights weights(sample_weight, A.rows, checks);
    const GramOptions options{bias, weights.column, as_threads(n_threads)};
    const Ridge ridge = as_ridge(eps, relative);

    const py::ssize_t shape[] = {static_cast<py::ssize_t>(n), B_array.shape(1)};
    WholeOutput W("out", out, shape, checks);
    W.check_apart("A", A_array);
    W.check_apart("B", B_array);
    if (weights.array) W.check_apart("sample_weight", *weights.array);
    try {
        const WithoutGil released(A.rows + n, n, n + B.cols);
        solve_layer(A, B, options, ridge, W.data());
        if (checks && !all_finite(W.data(), W.size())) raise_not_finite("A", A, "B", &B, options);
        W.finish();
    } catch (const NotPositiveDefinite& error) {
        if (checks) {
            const WithoutGil released(A.rows, n);
            check_finite("A", A, options.n_threads);
            check_finite("B", B, options.n_threads);
            if (!std::isfinite(error.value)) raise_not_finite("A", A, nullptr, nullptr, options);
        }
        raise_singular(error, ridge);
    }
    return W.array();
}

void check_systems(const Batch& batch, int n_threads) {
    for (std::size_t s = 0; s < batch.count; ++s) {
        const auto system = static_cast<std::ptrdiff_t>(s);
        check_symmetric("G", batch.G_of(s), n_threads, system);
        check_finite("C", batch.C_of(s), n_threads, system);
    }
}

py::object solve_batched_(py::handle G_, py::handle C_, py::handle eps, py::handle relative,
                          py::handle out, py::handle check_finite_, py::handle n_threads) {
    const py::array G_array = as_array("G", G_);
    const ConstMatrix G = as_matrices("G", G_array);
    const py::array C_array = as_array("C", C_);
    const ConstMatrix C = as_matrices("C", C_array);
    if (C_array.shape(0) != G_array.shape(0))
        throw py::value_error("C has shape " + written(shape_of(C_array)) + "; expected " +
                              std::to_string(G_array.shape(0)) + " systems, as many as G");
    check_square("G", G);
    check_rows("C", C, G.rows, "as many as G");
    const auto count = static_cast<std::size_t>(G_array.shape(0));
    check_size("G", G.rows, G.rows);
    check_size("C", G.rows, C.cols);
    check_size("C", count, G.rows * C.cols);
    const Ridge ridge = as_ridge(eps, relative);
    const bool checks = as_flag("check_finite", check_finite_);
    const int threads = as_threads(n_threads);
    const Batch batch{G, G_array.strides(0), C, C_array.strides(0), count};

    WholeOutput W("out", out, shape_of(C_array), checks);
    W.check_apart("G", G_array);
    W.check_apart("C", C_array);
    BatchOutcome outcome;
    {
        const WithoutGil released(batch.count, G.rows, G.rows, G.rows + C.cols);
        // Small systems are checked while they are read: a separate pass would take as long as the solution.
        if (checks && G.rows > max_interleaved) check_systems(batch, threads);
        outcome = solve_batch(batch, ridge, W.data(), threads);
        if (checks && outcome.suspect) check_systems(batch, threads);
        if (!outcome.failure) {
            if (checks) check_solution(W);
            W.finish();
        }
    }
    if (outcome.failure) raise_singular(outcome.failure->error(), ridge);
    return W.array();
}

}  // namespace

void register_solve(py::module_& module) {
    define<solve_>(module, "solve",
                   "solve(G, C, eps, relative, out, check_finite, n_threads, /)\n--\n\n");
    define<solve_layer_>(module, "solve_layer",
                         "solve_layer(A, B, bias, eps, relative, sample_weight, out, check_finite, "
                         "n_threads, /)\n--\n\n");
    define<solve_batched_>(
        module, "solve_batched",
        "solve_batched(G, C, eps, relative, out, check_finite, n_threads, /)\n--\n\n");
}

}  // namespace bpls::python
