// linear.
#include <cstdint>

#include "arguments.hpp"
#include "register.hpp"

namespace bpls::python {
namespace {

// The bytes that an array's elements lie in.
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

template <class T>
py::array run(const py::array& A_array, const ConstMatrix& A, const py::array& W_array,
              const ConstMatrix& W, const LinearOptions& options, const py::object& out) {
    py::array result = checked_out<T>(out, A_array, W_array, A_array.shape(0), W_array.shape(1));
    check_finite("W", W, options.n_threads);
    // Before an array of the caller's is written to, A is read once more; otherwise the products tell.
    if (!out.is_none()) check_finite("A", A, options.n_threads);
    T* data = static_cast<T*>(result.mutable_data());
    bool finite;
    {
        const py::gil_scoped_release release;
        finite = linear(A, W, options, data);
    }
    if (!finite) check_finite("A", A, options.n_threads);
    return result;
}

py::array linear_(const py::object& A_, const py::object& W_, const py::object& bias_,
                  const py::object& activation, const py::object& out,
                  const py::object& n_threads) {
    const py::array A_array = as_array("A", A_, Accepts::bytes_and_floats);
    const ConstMatrix A = as_matrix("A", A_array);
    const bool bias = as_flag("bias", bias_);
    const py::array W_array = as_array("W", W_);
    const ConstMatrix W = as_matrix("W", W_array);
    check_rows("W", W, A.cols + (bias ? 1 : 0),
               bias ? "one per column of A and one for the bias" : "one per column of A");
    check_size("A", A.rows, W.cols);
    const LinearOptions options{bias, as_activation(activation), as_threads(n_threads)};
    if (A.dtype != DType::f64 && W.dtype == DType::f32)
        return run<float>(A_array, A, W_array, W, options, out);
    return run<double>(A_array, A, W_array, W, options, out);
}

}  // namespace

void register_linear(py::module_& module) { module.def("linear", &linear_); }

}  // namespace bpls::python
