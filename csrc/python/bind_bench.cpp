// For the benchmarks: the peak rates of this machine, and the time of a call without Python's overhead.
#include <cmath>

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

double peak_(const py::object& dtype, const py::object& n_threads, double seconds) {
    const py::array empty(py::dtype::from_args(dtype), std::vector<py::ssize_t>{0, 1});
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

double time_gram(const py::object& A_, const py::object& n_threads, int repeats) {
    const py::array A_array = as_array("A", A_, Accepts::all_types);
    const ConstMatrix A = as_matrix("A", A_array);
    check_size("A", A.cols, A.cols);
    GramOptions options;
    options.n_threads = as_threads(n_threads);
    std::vector<double> G(A.cols * A.cols);
    const py::gil_scoped_release release;
    return seconds_per_call(repeats, [&] { gram(A, std::nullopt, options, G.data(), nullptr); });
}

// W is float32, with the bias in its last row.
double time_linear(const py::object& A_, const py::object& W_, const py::object& activation,
                   const py::object& n_threads, int repeats) {
    const py::array A_array = as_array("A", A_, Accepts::all_types);
    const ConstMatrix A = as_matrix("A", A_array);
    const py::array W_array = as_array("W", W_);
    const ConstMatrix W = as_matrix("W", W_array);
    check_size("A", A.rows, W.cols);
    const LinearOptions options{true, as_activation(activation), as_threads(n_threads)};
    std::vector<float> out(A.rows * W.cols);
    const py::gil_scoped_release release;
    return seconds_per_call(repeats, [&] { linear(A, W, options, out.data()); });
}

}  // namespace

void register_bench(py::module_& module) {
    module.def("peak", &peak_);
    module.def("read_rate", &read_rate_);
    module.def("time_gram", &time_gram);
    module.def("time_linear", &time_linear);
}

}  // namespace bpls::python
