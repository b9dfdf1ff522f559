// For the benchmarks: the peak rates of this machine, and the time of a call without Python's overhead.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "arguments.hpp"
#include "core/peak.hpp"
#include "register.hpp"
#include "timing.hpp"

namespace bpls::python {
namespace {

void check_seconds(double seconds) {
    if (!(seconds > 0) || std::isinf(seconds))
        throw py::value_error("seconds is not a finite number above 0");
}

double peak_(py::handle dtype, py::handle n_threads, double seconds) {
    const py::array empty(py::dtype::from_args(py::reinterpret_borrow<py::object>(dtype)),
                          std::vector<py::ssize_t>{0, 1});
    const DType type = as_matrix("dtype", as_array("dtype", empty, Accepts::all_types)).dtype;
    const int threads = as_threads(n_threads);
    check_seconds(seconds);
    const py::gil_scoped_release release;
    return peak(type, threads, seconds);
}

double read_rate_(std::size_t bytes, double seconds) {
    check_seconds(seconds);
    const py::gil_scoped_release release;
    return read_rate(bytes, seconds);
}

// An argument of a call that is timed.
struct Matrix {
    py::array array;
    ConstMatrix view;

    Matrix(const char* name, py::handle value)
        : array(as_array(name, value, Accepts::all_types)), view(as_matrix(name, array)) {}
};

double time_gram(py::handle A_, py::handle n_threads, int repeats) {
    const Matrix A("A", A_);
    check_size("A", A.view.cols, A.view.cols);
    GramOptions options;
    options.n_threads = as_threads(n_threads);
    std::vector<double> G(A.view.cols * A.view.cols);
    const py::gil_scoped_release release;
    return seconds_per_call(repeats,
                            [&] { gram(A.view, std::nullopt, options, G.data(), nullptr); });
}

double time_cross(py::handle A_, py::handle D_, py::handle n_threads, int repeats) {
    const Matrix A("A", A_), D("D", D_);
    GramOptions options;
    options.n_threads = as_threads(n_threads);
    check_size("A", A.view.cols, D.view.cols);
    std::vector<double> C(A.view.cols * D.view.cols);
    const py::gil_scoped_release release;
    return seconds_per_call(repeats, [&] { cross(A.view, D.view, options, C.data()); });
}

// With the default ridge.
double time_solve(py::handle G_, py::handle C_, py::handle n_threads, int repeats) {
    const Matrix G("G", G_), C("C", C_);
    const int threads = as_threads(n_threads);
    check_size("C", C.view.rows, C.view.cols);
    std::vector<double> W(C.view.rows * C.view.cols);
    const py::gil_scoped_release release;
    return seconds_per_call(repeats, [&] { solve(G.view, C.view, {}, W.data(), threads); });
}

double time_solve_layer(py::handle A_, py::handle B_, py::handle n_threads, int repeats) {
    const Matrix A("A", A_), B("B", B_);
    GramOptions options;
    options.n_threads = as_threads(n_threads);
    check_size("A", A.view.cols, B.view.cols);
    std::vector<double> W(A.view.cols * B.view.cols);
    const py::gil_scoped_release release;
    return seconds_per_call(repeats, [&] { solve_layer(A.view, B.view, options, {}, W.data()); });
}

double time_solve_batched(py::handle G_, py::handle C_, py::handle n_threads, int repeats) {
    const py::array G = as_array("G", G_), C = as_array("C", C_);
    const ConstMatrix first_G = as_matrices("G", G), first_C = as_matrices("C", C);
    const int threads = as_threads(n_threads);
    const auto count = static_cast<std::size_t>(std::min(G.shape(0), C.shape(0)));
    std::vector<double> W(static_cast<std::size_t>(C.size()));
    const py::gil_scoped_release release;
    return seconds_per_call(repeats, [&] {
        solve_batched(first_G, G.strides(0), first_C, C.strides(0), count, {}, W.data(), threads);
    });
}

// W is float32, with the bias in its last row.
double time_linear(py::handle A_, py::handle W_, py::handle activation, py::handle n_threads,
                   int repeats) {
    const Matrix A("A", A_), W("W", W_);
    check_size("A", A.view.rows, W.view.cols);
    const LinearOptions options{true, as_activation(activation), as_threads(n_threads)};
    std::vector<float> out(A.view.rows * W.view.cols);
    const py::gil_scoped_release release;
    return seconds_per_call(repeats, [&] { linear(A.view, W.view, options, out.data()); });
}

// As time_linear(), of tangent() where all values of the layer are 1/2.
double time_tangent(py::handle A_, py::handle W_, py::handle activation, py::handle n_threads,
                    int repeats) {
    const Matrix A("A", A_), W("W", W_);
    check_size("A", A.view.rows, W.view.cols);
    const LinearOptions options{true, as_activation(activation), as_threads(n_threads)};
    std::vector<float> values(A.view.rows * W.view.cols, 0.5F), out(values.size());
    const py::gil_scoped_release release;
    return seconds_per_call(repeats,
                            [&] { tangent(A.view, W.view, values.data(), options, out.data()); });
}

// The times of forward, inverse and derivative for as many rows and columns as z has, all values 1/2.
std::tuple<double, double, double> time_activation(py::handle activation, py::handle z_,
                                                   py::handle n_threads, int repeats) {
    const Matrix z("z", z_);
    const auto [rows, cols] = std::pair(z.view.rows, z.view.cols);
    const Activation which = as_activation(activation);
    const int threads = as_threads(n_threads);
    std::vector<float> in(rows * cols, 0.5F), out(in.size());
    const float margin = std::numeric_limits<float>::epsilon();
    const py::gil_scoped_release release;
    return {
        seconds_per_call(repeats,
                         [&] { forward(which, in.data(), out.data(), rows, cols, threads); }),
        seconds_per_call(
            repeats, [&] { inverse(which, in.data(), out.data(), rows, cols, margin, threads); }),
        seconds_per_call(repeats,
                         [&] { derivative(which, in.data(), out.data(), rows, cols, threads); })};
}

}  // namespace

void register_bench(py::module_& module) {
    module.def("peak", &peak_);
    module.def("read_rate", &read_rate_);
    module.def("time_gram", &time_gram);
    module.def("time_cross", &time_cross);
    module.def("time_solve", &time_solve);
    module.def("time_solve_layer", &time_solve_layer);
    module.def("time_solve_batched", &time_solve_batched);
    module.def("time_linear", &time_linear);
    module.def("time_tangent", &time_tangent);
    module.def("time_activation", &time_activation);
}

}  // namespace bpls::python
