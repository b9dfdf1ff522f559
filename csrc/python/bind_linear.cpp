// linear, tangent and linear_bytes.
#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <span>

#include "arguments.hpp"
#include "fast_call.hpp"
#include "gil.hpp"
#include "output.hpp"
#include "register.hpp"

namespace bpls::python {
namespace {

// The checked arguments of linear and tangent.
struct Layer {
    py::array A_array, W_array;
    ConstMatrix A, W;
    LinearOptions options;
    bool checks;

    Layer(py::handle A_, py::handle W_, py::handle bias_, py::handle activation,
          py::handle check_finite_, py::handle n_threads)
        : A_array(as_array("A", A_, Accepts::all_types)),
          W_array(as_array("W", W_)),
          A(as_matrix("A", A_array)),
          W(as_matrix("W", W_array)),
          options{as_flag("bias", bias_), as_activation(activation), as_threads(n_threads)},
          checks(as_flag("check_finite", check_finite_)) {
        check_rows(
            "W", W, A.cols + (options.bias ? 1 : 0),
            options.bias ? "one per column of A and one for the bias" : "one per column of A");
        check_size("A", A.rows, W.cols);
    }

    // The type of the result.
    DType dtype() const {
        return fits_float(A.dtype) && W.dtype == DType::f32 ? DType::f32 : DType::f64;
    }
    std::array<py::ssize_t, 2> shape() const { return {A_array.shape(0), W_array.shape(1)}; }
};

// Calls kernel(out), which returns whether A can be finite, in the type of the result and without the GIL.
template <class F>
py::object run(const Layer& layer, Output& out, F&& kernel) {
    out.check_apart("A", layer.A_array);
    out.check_apart("W", layer.W_array);
    const auto check_rows_of_A = [&] { check_finite("A", layer.A, layer.options.n_threads); };
    {
        const WithoutGil released(layer.A.rows, layer.W.rows + activation_multiply_adds,
                                  layer.W.cols);
        if (layer.checks) check_finite("W", layer.W, layer.options.n_threads);
        // Before an array of the caller is written to, A is checked in a separate pass; otherwise the products show
        // whether it is finite.
        if (layer.checks && out.given()) check_rows_of_A();
        const bool finite = layer.dtype() == DType::f32 ? kernel(static_cast<float*>(out.data()))
                                                        : kernel(static_cast<double*>(out.data()));
        if (!finite && layer.checks) check_rows_of_A();
    }
    return out.array();
}

py::object linear_(py::handle A, py::handle W, py::handle bias, py::handle activation,
                   py::handle out_, py::handle check_finite, py::handle n_threads) {
    const Layer layer(A, W, bias, activation, check_finite, n_threads);
    Output out("out", out_, layer.dtype(), layer.shape());
    return run(layer, out,
               [&](auto* data) { return linear(layer.A, layer.W, layer.options, data); });
}

// The values of the activation: C-contiguous, with the type and shape of the result.
py::array checked_values(py::handle N, const Layer& layer) {
    py::array array = as_array("N", N);
    const auto shape = layer.shape();
    if (!std::ranges::equal(shape_of(array), shape))
        throw py::value_error("N has shape " + written(shape_of(array)) + "; expected " +
                              written(shape));
    if (dtype_of_array(array) != layer.dtype())
        throw py::type_error("N has dtype " + dtype_name(array) + "; expected " +
                             name_of(layer.dtype()) + ", as the result");
    if (!is_contiguous(array))
        throw py::value_error("N is not C-contiguous and aligned; expected such an array");
    return array;
}

py::object tangent_(py::handle A, py::handle W, py::handle N_, py::handle bias,
                    py::handle activation, py::handle out_, py::handle check_finite,
                    py::handle n_threads) {
    const Layer layer(A, W, bias, activation, check_finite, n_threads);
    const py::array N = checked_values(N_, layer);
    Output out("out", out_, layer.dtype(), layer.shape());
    out.check_apart_or_same("N", N);
    return run(layer, out, [&]<class T>(T* data) {
        return tangent(layer.A, layer.W, static_cast<const T*>(N.data()), layer.options, data);
    });
}

// Returns an argument as a C-contiguous array of one type, through numpy.asarray if it is not an array.
template <class T>
py::array_t<T, py::array::c_style> exactly(const char* name, py::handle value, py::ssize_t ndim) {
    const auto array = py::array::ensure(value);
    const std::string wanted(py::str(py::object(py::dtype::of<T>())));
    if (!array || !py::isinstance<py::array_t<T>>(array))
        throw py::type_error(std::string(name) + " has dtype " +
                             (array ? dtype_name(array) : "object") + "; expected " + wanted);
    if (array.ndim() != ndim)
        throw py::value_error(std::string(name) + " has shape " + written(shape_of(array)) +
                              "; expected " + std::to_string(ndim) +
                              (ndim == 1 ? " axis" : " axes"));
    auto result = py::array_t<T, py::array::c_style>::ensure(array);
    if (!result) throw std::bad_alloc();
    return result;
}

py::object linear_bytes_(py::handle A_, py::handle W_, py::handle scale_, py::handle out_,
                         py::handle n_threads) {
    const py::array A_array = as_array("A", A_, Accepts::all_types);
    const ConstMatrix A = as_matrix("A", A_array);
    if (A.dtype != DType::u8)
        throw py::type_error("A has dtype " + dtype_name(A_array) + "; expected uint8");
    if (A.cols > 1 && A.rows > 0 && A.col_stride != 1)
        throw py::value_error("A has rows that are not contiguous; expected contiguous rows");
    if (A.cols > most_byte_columns)
        throw py::value_error("A has " + std::to_string(A.cols) + " columns; expected at most " +
                              std::to_string(most_byte_columns));
    const auto W = exactly<std::int8_t>("W", W_, 2);
    if (static_cast<std::size_t>(W.shape(0)) != A.cols)
        throw py::value_error("W has " + std::to_string(W.shape(0)) + " rows; expected " +
                              std::to_string(A.cols) + ", one per column of A");
    const auto scale = exactly<float>("scale", scale_, 1);
    if (scale.shape(0) != W.shape(1))
        throw py::value_error("scale has " + std::to_string(scale.shape(0)) +
                              " factors; expected " + std::to_string(W.shape(1)) +
                              ", one per column of W");
    const int threads = as_threads(n_threads);
    check_size("A", A.rows, static_cast<std::size_t>(W.shape(1)));
    const py::ssize_t shape[] = {A_array.shape(0), W.shape(1)};
    Output out("out", out_, DType::f32, shape);
    out.check_apart("A", A_array);
    out.check_apart("W", W);
    out.check_apart("scale", scale);
    float* data = static_cast<float*>(out.data());
    const std::span<const float> factors(scale.data(), static_cast<std::size_t>(scale.size()));
    {
        const WithoutGil released(A.rows, A.cols, factors.size());
        linear_bytes(A, W.data(), factors, threads, data);
    }
    return out.array();
}

}  // namespace

void register_linear(py::module_& module) {
    define<linear_>(module, "linear",
                    "linear(A, W, bias, activation, out, check_finite, n_threads, /)\n--\n\n");
    define<tangent_>(module, "tangent",
                     "tangent(A, W, N, bias, activation, out, check_finite, n_threads, /)\n--\n\n");
    define<linear_bytes_>(module, "linear_bytes",
                          "linear_bytes(A, W, scale, out, n_threads, /)\n--\n\n");
}

}  // namespace bpls::python
