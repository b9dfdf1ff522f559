// solve, solve_layer and solve_batched.
#include <cmath>

#include "arguments.hpp"
#include "core/batch.hpp"
#include "register.hpp"

namespace bpls::python {
namespace {

// Throws if G and C are finite and their solution is not: the quotient of their scales overflows.
void check_solution(const double* W, std::size_t count) {
    if (!all_finite(W, count))
        throw NonFiniteError("C is too large for G: the solution overflows float64; scale them");
}

py::array_t<double> solve_(const py::object& G_, const py::object& C_, const py::object& eps,
                           const py::object& relative, const py::object& n_threads) {
    const py::array G_array = as_array("G", G_);
    const ConstMatrix G = as_matrix("G", G_array);
    const py::array C_array = as_array("C", C_);
    const ConstMatrix C = as_matrix("C", C_array);
    check_square("G", G);
    check_rows("C", C, G.rows, "as many as G");
    check_size("G", G.rows, G.rows);
    check_size("C", G.rows, C.cols);
    const Ridge ridge = as_ridge(eps, relative);
    const int threads = as_threads(n_threads);
    check_symmetric("G", G, threads);
    check_finite("C", C, threads);

    py::array_t<double> W({C_array.shape(0), C_array.shape(1)});
    double* data = W.mutable_data();
    try {
        const py::gil_scoped_release release;
        solve(G, C, ridge, data, threads);
    } catch (const NotPositiveDefinite& error) {
        raise_singular(error, ridge);
    }
    check_solution(data, G.rows * C.cols);
    return W;
}

py::array_t<double> solve_layer_(const py::object& A_, const py::object& B_,
                                 const py::object& bias_, const py::object& eps,
                                 const py::object& relative, const py::object& sample_weight,
                                 const py::object& n_threads) {
    const py::array A_array = as_array("A", A_, Accepts::all_types);
    const ConstMatrix A = as_matrix("A", A_array);
    const bool bias = as_flag("bias", bias_);
    const py::array B_array = as_array("B", B_);
    const ConstMatrix B = as_matrix("B", B_array);
    const std::size_t n = A.cols + (bias ? 1 : 0);
    check_rows("B", B, A.rows, "one per row of A");
    check_size("A", n, n);
    check_size("B", n, B.cols);
    const GramWeights weights(sample_weight, A.rows);
    const GramOptions options{bias, weights.column, as_threads(n_threads)};
    const Ridge ridge = as_ridge(eps, relative);

    py::array_t<double> W({static_cast<py::ssize_t>(n), B_array.shape(1)});
    double* data = W.mutable_data();
    try {
        const py::gil_scoped_release release;
        solve_layer(A, B, options, ridge, data);
    } catch (const NotPositiveDefinite& error) {
        check_finite("A", A, options.n_threads);
        check_finite("B", B, options.n_threads);
        if (!std::isfinite(error.value)) raise_not_finite("A", A, nullptr, nullptr, options);
        raise_singular(error, ridge);
    }
    if (!all_finite(data, n * B.cols)) raise_not_finite("A", A, "B", &B, options);
    return W;
}

void check_systems(const Batch& batch, int n_threads) {
    for (std::size_t s = 0; s < batch.count; ++s) {
        const auto system = static_cast<std::ptrdiff_t>(s);
        check_symmetric("G", batch.G_of(s), n_threads, system);
        check_finite("C", batch.C_of(s), n_threads, system);
    }
}

py::array_t<double> solve_batched_(const py::object& G_, const py::object& C_,
                                   const py::object& eps, const py::object& relative,
                                   const py::object& n_threads) {
    const py::array G_array = as_array("G", G_);
    const ConstMatrix G = as_matrices("G", G_array);
    const py::array C_array = as_array("C", C_);
    const ConstMatrix C = as_matrices("C", C_array);
    if (C_array.shape(0) != G_array.shape(0))
        throw py::value_error("C has shape " + shape_of(C_array) + "; expected " +
                              std::to_string(G_array.shape(0)) + " systems, as many as G");
    check_square("G", G);
    check_rows("C", C, G.rows, "as many as G");
    const auto count = static_cast<std::size_t>(G_array.shape(0));
    check_size("G", G.rows, G.rows);
    check_size("C", G.rows, C.cols);
    check_size("C", count, G.rows * C.cols);
    const Ridge ridge = as_ridge(eps, relative);
    const int threads = as_threads(n_threads);
    const Batch batch{G, G_array.strides(0), C, C_array.strides(0), count};
    // Small systems are checked while they are read: a separate pass would take as long as the solution.
    if (G.rows > max_interleaved) check_systems(batch, threads);

    py::array_t<double> W({C_array.shape(0), C_array.shape(1), C_array.shape(2)});
    double* data = W.mutable_data();
    BatchOutcome outcome;
    {
        const py::gil_scoped_release release;
        outcome = solve_batch(batch, ridge, data, threads);
    }
    if (outcome.suspect) check_systems(batch, threads);
    if (outcome.failure) raise_singular(outcome.failure->error(), ridge);
    check_solution(data, count * G.rows * C.cols);
    return W;
}

}  // namespace

void register_solve(py::module_& module) {
    module.def("solve", &solve_);
    module.def("solve_layer", &solve_layer_);
    module.def("solve_batched", &solve_batched_);
}

}  // namespace bpls::python
