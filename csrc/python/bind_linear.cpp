// linear, tangent and linear_bytes.
#include <cstdint>
#include <new>
#include <span>

#include "arguments.hpp"
#include "register.hpp"

namespace bpls::python {
namespace {

// The range of memory that an array's elements occupy.
struct Extent {
    std::uintptr_t begin, end;
};

Extent extent_of(const py::array& array) {
    auto begin = reinterpret_cast<std::uintptr_t>(array.data());
    auto end = begin + static_cast<std::uintptr_t>(array.itemsize());
    for (py::ssize_t axis = 0; axis < array.ndim(); ++axis) {
        if (array.shape(axis) == 0) return {begin, begin};
        const py::ssize_t reach = (array.shape(axis) - 1) * array.strides(axis);
        if (reach < 0)
            begin -= static_cast<std::uintptr_t>(-reach);
        else
            end += static_cast<std::uintptr_t>(reach);
    }
    return {begin, end};
}

bool overlap(const py::array& a, const py::array& b) {
    const Extent x = extent_of(a), y = extent_of(b);
    return x.begin < y.end && y.begin < x.end;
}

template <class T>
py::array checked_out(const py::object& out, const py::array& A, const py::array& W,
                      py::ssize_t rows, py::ssize_t cols) {
    if (out.is_none()) return py::array_t<T>({rows, cols});
    if (!py::isinstance<py::array>(out))
        throw py::type_error("out is not a NumPy array; expected None or an array to write to");
    const auto array = py::reinterpret_borrow<py::array>(out);
    const std::string wanted = "(" + std::to_string(rows) + ", " + std::to_string(cols) + ")";
    if (!py::isinstance<py::array_t<T>>(out))
        throw py::type_error("out has dtype " + std::string(py::str(py::object(array.dtype()))) +
                             "; expected " + std::string(py::str(py::object(py::dtype::of<T>()))));
    if (array.ndim() != 2 || array.shape(0) != rows || array.shape(1) != cols)
        throw py::value_error("out has shape " + shape_of(array) + "; expected " + wanted);
    if (!(array.flags() & py::array::c_style))
        throw py::value_error("out is not C-contiguous; expected a C-contiguous array");
    if (!array.writeable()) throw py::value_error("out is read-only; expected a writeable array");
    if (reinterpret_cast<std::uintptr_t>(array.data()) % alignof(T) != 0)
        throw py::value_error("out is not aligned; expected an aligned array");
    if (overlap(array, A))
        throw py::value_error("out may overlap A in memory; expected an array of its own");
    if (overlap(array, W))
        throw py::value_error("out may overlap W in memory; expected an array of its own");
    return array;
}

// The checked arguments of linear and tangent.
struct Layer {
    py::array A_array, W_array;
    ConstMatrix A, W;
    LinearOptions options;
    bool looks_for_nan;

    bool narrow() const { return fits_float(A.dtype) && W.dtype == DType::f32; }
};

Layer checked_layer(const py::object& A_, const py::object& W_, const py::object& bias_,
                    const py::object& activation, const py::object& check_finite_,
                    const py::object& n_threads) {
    Layer layer;
    layer.A_array = as_array("A", A_, Accepts::all_types);
    layer.A = as_matrix("A", layer.A_array);
    const bool bias = as_flag("bias", bias_);
    layer.W_array = as_array("W", W_);
    layer.W = as_matrix("W", layer.W_array);
    check_rows("W", layer.W, layer.A.cols + (bias ? 1 : 0),
               bias ? "one per column of A and one for the bias" : "one per column of A");
    check_size("A", layer.A.rows, layer.W.cols);
    layer.looks_for_nan = as_flag("check_finite", check_finite_);
    layer.options = {bias, as_activation(activation), as_threads(n_threads)};
    return layer;
}

// Calls kernel(out), which returns whether A can be finite, without the GIL.
template <class T, class F>
py::array run(const Layer& layer, const py::object& out, F&& kernel) {
    py::array result = checked_out<T>(out, layer.A_array, layer.W_array, layer.A_array.shape(0),
                                      layer.W_array.shape(1));
    const int threads = layer.options.n_threads;
    if (layer.looks_for_nan) {
        check_finite("W", layer.W, threads);
        // Before an array of the caller is written to, A is checked in a separate pass; otherwise the products show
        // whether it is finite.
        if (!out.is_none()) check_finite("A", layer.A, threads);
    }
    T* data = static_cast<T*>(result.mutable_data());
    bool finite;
    {
        const py::gil_scoped_release release;
        finite = kernel(data);
    }
    if (!finite && layer.looks_for_nan) check_finite("A", layer.A, threads);
    return result;
}

py::array linear_(const py::object& A, const py::object& W, const py::object& bias,
                  const py::object& activation, const py::object& out,
                  const py::object& check_finite, const py::object& n_threads) {
    const Layer layer = checked_layer(A, W, bias, activation, check_finite, n_threads);
    const auto kernel = [&](auto* data) { return linear(layer.A, layer.W, layer.options, data); };
    return layer.narrow() ? run<float>(layer, out, kernel) : run<double>(layer, out, kernel);
}

// The values of the activation: C-contiguous, with the type of the result. `out` may be N itself, but no other array that
// shares its memory.
template <class T>
py::array checked_values(const py::object& N, const Layer& layer, const py::object& out) {
    const py::array array = as_array("N", N);
    const py::ssize_t rows = layer.A_array.shape(0), cols = layer.W_array.shape(1);
    if (array.ndim() != 2 || array.shape(0) != rows || array.shape(1) != cols)
        throw py::value_error("N has shape " + shape_of(array) + "; expected (" +
                              std::to_string(rows) + ", " + std::to_string(cols) + ")");
    if (array.itemsize() != sizeof(T))
        throw py::type_error("N has dtype " + std::string(py::str(py::object(array.dtype()))) +
                             "; expected " + std::string(py::str(py::object(py::dtype::of<T>()))) +
                             ", as the result");
    if (!(array.flags() & py::array::c_style) ||
        reinterpret_cast<std::uintptr_t>(array.data()) % alignof(T) != 0)
        throw py::value_error("N is not C-contiguous and aligned; expected such an array");
    if (py::isinstance<py::array>(out)) {
        const auto target = py::reinterpret_borrow<py::array>(out);
        if (target.data() != array.data() && overlap(target, array))
            throw py::value_error(
                "out may overlap N in memory; expected N itself or an array of its own");
    }
    return array;
}

py::array tangent_(const py::object& A, const py::object& W, const py::object& N,
                   const py::object& bias, const py::object& activation, const py::object& out,
                   const py::object& check_finite, const py::object& n_threads) {
    const Layer layer = checked_layer(A, W, bias, activation, check_finite, n_threads);
    const auto in = [&]<class T>(T) {
        const py::array N_array = checked_values<T>(N, layer, out);
        const T* values = static_cast<const T*>(N_array.data());
        return run<T>(layer, out, [&](T* data) {
            return tangent(layer.A, layer.W, values, layer.options, data);
        });
    };
    return layer.narrow() ? in(float()) : in(double());
}

// Returns an argument as a C-contiguous array of one type, through numpy.asarray if it is not an array.
template <class T>
py::array_t<T, py::array::c_style> exactly(const char* name, const py::object& value,
                                           py::ssize_t ndim) {
    const auto array = py::array::ensure(value);
    const std::string wanted(py::str(py::object(py::dtype::of<T>())));
    if (!array || !py::isinstance<py::array_t<T>>(array))
        throw py::type_error(std::string(name) + " has dtype " +
                             (array ? std::string(py::str(py::object(array.dtype()))) : "object") +
                             "; expected " + wanted);
    if (array.ndim() != ndim)
        throw py::value_error(std::string(name) + " has shape " + shape_of(array) + "; expected " +
                              std::to_string(ndim) + (ndim == 1 ? " axis" : " axes"));
    auto result = py::array_t<T, py::array::c_style>::ensure(array);
    if (!result) throw std::bad_alloc();
    return result;
}

py::array linear_bytes_(const py::object& A_, const py::object& W_, const py::object& scale_,
                        const py::object& n_threads) {
    const py::array A_array = as_array("A", A_, Accepts::all_types);
    const ConstMatrix A = as_matrix("A", A_array);
    if (A.dtype != DType::u8)
        throw py::type_error("A has dtype " + std::string(py::str(py::object(A_array.dtype()))) +
                             "; expected uint8");
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
    py::array_t<float> out({A_array.shape(0), W.shape(1)});
    float* data = out.mutable_data();
    const std::span<const float> factors(scale.data(), static_cast<std::size_t>(scale.size()));
    {
        const py::gil_scoped_release release;
        linear_bytes(A, W.data(), factors, threads, data);
    }
    return out;
}

}  // namespace

void register_linear(py::module_& module) {
    module.def("linear", &linear_);
    module.def("tangent", &tangent_);
    module.def("linear_bytes", &linear_bytes_);
}

}  // namespace bpls::python
