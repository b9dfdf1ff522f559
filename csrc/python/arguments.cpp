// The checks and conversions of arguments.hpp.
#include "arguments.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <new>
#include <string_view>

#include "core/batch.hpp"
#include "core/dense.hpp"
#include "core/finite.hpp"
#include "core/symmetric.hpp"

namespace bpls::python {
namespace {

// The names of the accepted types: "float32 or float64".
std::string expected(Accepts accepts) {
    std::vector<std::string> names;
    for (int i = 0; i < dtype_count; ++i)
        if (const auto dtype = static_cast<DType>(i);
            accepts == Accepts::all_types || is_float(dtype))
            names.push_back(name_of(dtype));
    std::string all = names.front();
    for (std::size_t i = 1; i < names.size(); ++i)
        all += (i + 1 < names.size() ? ", " : " or ") + names[i];
    return all;
}

bool is_accepted(const py::array& array, Accepts accepts) noexcept {
    const std::optional<DType> found = find_dtype(array);
    return found && (accepts == Accepts::all_types || is_float(*found));
}

void check_ndim(const char* name, const py::array& array, int ndim, const char* axes) {
    if (array.ndim() != ndim)
        throw py::value_error(std::string(name) + " has " + std::to_string(array.ndim()) +
                              " dimension(s), shape " + written(shape_of(array)) + "; expected " +
                              std::to_string(ndim) + " " + axes);
}

// A view of the last two axes, at the first index of the others.
ConstMatrix last_axes(const char* name, const py::array& array) {
    const Shape shape = shape_of(array).last(2);
    if (shape[1] == 0)
        throw py::value_error(std::string(name) + " has no columns; expected at least one");
    const py::ssize_t* strides = array.strides() + array.ndim() - 2;
    return {static_cast<const unsigned char*>(array.data()),
            dtype_of_array(array),
            static_cast<std::size_t>(shape[0]),
            static_cast<std::size_t>(shape[1]),
            strides[0],
            strides[1]};
}

// A view of a 1-D array as one column.
ConstMatrix as_column(const char* name, const py::array& array, const char* axes) {
    check_ndim(name, array, 1, axes);
    return {static_cast<const unsigned char*>(array.data()),
            dtype_of_array(array),
            static_cast<std::size_t>(array.shape(0)),
            1,
            array.strides(0),
            array.itemsize()};
}

// The index of an element; with the number of its matrix in a batch, unless `system` is negative.
std::string place(std::ptrdiff_t system, std::size_t row, std::size_t col) {
    return "[" + (system < 0 ? "" : std::to_string(system) + ", ") + std::to_string(row) + ", " +
           std::to_string(col) + "]";
}

std::string shown(double value) {
    const py::gil_scoped_acquire acquire;
    return py::str(py::float_(value));
}

// The name of a value that is not finite.
std::string kind_of(double value) { return std::isnan(value) ? "NaN" : "infinity"; }

}  // namespace

std::string written(Shape shape) {
    std::string all;
    for (const py::ssize_t length : shape)
        all += (all.empty() ? "" : ", ") + std::to_string(length);
    return "(" + all + (shape.size() == 1 ? ",)" : ")");
}

std::string name_of(DType dtype) {
    return visit_dtype(dtype, []<class T>() -> std::string { return py::str(py::dtype::of<T>()); });
}

std::string dtype_name(const py::array& array) { return py::str(py::object(array.dtype())); }

std::string type_name(py::handle value) {
    return py::str(py::type::handle_of(value).attr("__name__"));
}

std::optional<DType> find_dtype(const py::array& array) noexcept {
    const auto* type =
        py::detail::array_descriptor_proxy(py::detail::array_proxy(array.ptr())->descr);
    if (type->byteorder != '=' && type->byteorder != '|') return {};
    for (int i = 0; i < dtype_count; ++i)
        if (visit_dtype(static_cast<DType>(i), []<class T>() { return py::dtype::num_of<T>(); }) ==
            type->type_num)
            return static_cast<DType>(i);
    return {};
}

py::array as_array(const char* name, py::handle value, Accepts accepts) {
    py::object made;
    if (!py::isinstance<py::array>(value)) {
        try {
            made = py::module_::import("numpy").attr("asarray")(value);
        } catch (const py::error_already_set& error) {
            if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_ValueError)) throw;
            throw py::type_error(std::string(name) + " is a " + type_name(value) +
                                 " that NumPy cannot make an array of; expected an array of " +
                                 expected(accepts));
        }
    }
    auto array = py::reinterpret_borrow<py::array>(made ? made : value);
    if (!is_accepted(array, accepts))
        throw py::type_error(std::string(name) + " has dtype " + dtype_name(array) + "; expected " +
                             expected(accepts) + " in native byte order");
    return array;
}

py::array as_contiguous(const py::array& array) {
    if (is_contiguous(array)) return array;
    auto copy = py::array::ensure(array, contiguous_flags);
    if (!copy) throw std::bad_alloc();
    return copy;
}

ConstMatrix as_matrix(const char* name, const py::array& array) {
    check_ndim(name, array, 2, "(rows, columns)");
    return last_axes(name, array);
}

ConstMatrix as_matrices(const char* name, const py::array& array) {
    check_ndim(name, array, 3, "(systems, rows, columns)");
    return last_axes(name, array);
}

void check_rows(const char* name, const ConstMatrix& matrix, std::size_t rows, const char* why) {
    if (matrix.rows != rows)
        throw py::value_error(std::string(name) + " has " + std::to_string(matrix.rows) +
                              " rows; expected " + std::to_string(rows) + ", " + why);
}

void check_square(const char* name, const ConstMatrix& matrix) {
    if (matrix.rows != matrix.cols)
        throw py::value_error(std::string(name) + " is " + std::to_string(matrix.rows) + " x " +
                              std::to_string(matrix.cols) + "; expected a square matrix");
}

void check_symmetric(const char* name, const ConstMatrix& matrix, int n_threads,
                     std::ptrdiff_t system) {
    if (is_symmetric(matrix, symmetry_tolerance, n_threads)) return;
    check_finite(name, matrix, n_threads, system);
    double difference = 0;
    std::size_t row = 0, col = 0;
    for (std::size_t i = 0; i < matrix.rows; ++i)
        for (std::size_t j = i + 1; j < matrix.cols; ++j) {
            const double apart = std::abs(value_at(matrix, i, j) - value_at(matrix, j, i));
            if (apart <= difference) continue;
            difference = apart;
            row = i;
            col = j;
        }
    throw py::value_error(std::string(name) + " is not symmetric: " + place(system, row, col) +
                          " is " + shown(value_at(matrix, row, col)) + " and " +
                          place(system, col, row) + " is " + shown(value_at(matrix, col, row)) +
                          "; expected a Gram matrix");
}

bool as_flag(const char* name, py::handle value) {
    if (value.ptr() == Py_True) return true;
    if (value.ptr() == Py_False) return false;
    if (!py::isinstance(value, py::module_::import("numpy").attr("bool_")))
        throw py::type_error(std::string(name) + " is a " + type_name(value) +
                             "; expected True or False");
    return PyObject_IsTrue(value.ptr()) == 1;
}

void check_finite(const char* name, const ConstMatrix& matrix, int n_threads,
                  std::ptrdiff_t system) {
    if (const std::optional<Place> bad = first_nonfinite(matrix, n_threads))
        throw NonFiniteError(std::string(name) + " contains " + (bad->nan ? "NaN" : "infinity") +
                             " at " + place(system, bad->row, bad->col) +
                             "; expected finite values");
}

void check_size(const char* name, std::size_t rows, std::size_t cols) {
    constexpr auto limit = static_cast<std::size_t>(PTRDIFF_MAX) / sizeof(double);
    if (rows != 0 && cols > limit / rows)
        throw py::value_error(std::string(name) + " is too large: the result would have " +
                              std::to_string(rows) + " x " + std::to_string(cols) +
                              " entries, more than memory can address");
}

int as_threads(py::handle n_threads) {
    if (n_threads.is_none()) return 0;
    const auto wanted = [] {
        return "; expected None or an integer from 1 to " + std::to_string(max_threads);
    };
    if (!PyIndex_Check(n_threads.ptr()))
        throw py::type_error("n_threads is a " + type_name(n_threads) + wanted());
    const Py_ssize_t number = PyNumber_AsSsize_t(n_threads.ptr(), nullptr);
    if (number == -1 && PyErr_Occurred()) throw py::error_already_set();
    if (number < 1 || number > max_threads)
        throw py::value_error("n_threads is " + std::string(py::str(n_threads)) + wanted());
    return static_cast<int>(number);
}

double as_number(const char* name, py::handle value) {
    const double number = PyFloat_AsDouble(value.ptr());
    if (number == -1 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
            PyErr_Clear();
            return std::numeric_limits<double>::infinity();
        }
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw py::error_already_set();
        PyErr_Clear();
        throw py::type_error(std::string(name) + " is a " + type_name(value) +
                             "; expected a number");
    }
    return number;
}

Ridge as_ridge(py::handle eps, py::handle relative) {
    const double number = as_number("eps", eps);
    if (!(number >= 0) || std::isinf(number))
        throw py::value_error("eps is " + shown(number) + "; expected a finite number >= 0");
    return {number, as_flag("relative", relative)};
}

Activation as_activation(py::handle name) {
    const bool is_text = PyUnicode_Check(name.ptr());
    if (is_text) {
        Py_ssize_t length = 0;
        const char* text = PyUnicode_AsUTF8AndSize(name.ptr(), &length);
        if (!text) throw py::error_already_set();
        const std::string_view wanted(text, static_cast<std::size_t>(length));
        if (const ActivationInfo* info = find_activation(wanted)) return info->activation;
    }
    std::string names;
    for (const ActivationInfo& info : activation_list)
        (names += names.empty() ? "" : ", ") += info.name;
    if (!is_text)
        throw py::type_error("activation is a " + type_name(name) + "; expected one of the names " +
                             names);
    throw py::value_error("activation is '" + std::string(py::str(name)) + "'; expected one of " +
                          names);
}

GramWeights::GramWeights(py::handle sample_weight, std::size_t rows, bool checks_values) {
    if (sample_weight.is_none()) return;
    array = as_array("sample_weight", sample_weight);
    const ConstMatrix weights = as_column("sample_weight", *array, "(rows,)");
    check_rows("sample_weight", weights, rows, "one per row of A");
    column = weights;
    if (!checks_values) return;
    const auto good = [](double weight) { return weight >= 0 && std::isfinite(weight); };
    std::size_t i = 0;
    {
        const py::gil_scoped_release release;
        while (i < rows && good(value_at(weights, i, 0))) ++i;
    }
    if (i < rows) {
        const double weight = value_at(weights, i, 0);
        const std::string message = "sample_weight contains " +
                                    (std::isfinite(weight) ? shown(weight) : kind_of(weight)) +
                                    " at [" + std::to_string(i) + "]; expected finite values >= 0";
        if (std::isfinite(weight)) throw py::value_error(message);
        throw NonFiniteError(message);
    }
}

GramScale::GramScale(py::handle scale, std::size_t columns) {
    if (scale.is_none()) return;
    const bool is_array = py::isinstance<py::array>(scale);
    const bool many = is_array ? py::reinterpret_borrow<py::array>(scale).ndim() > 0
                               : PySequence_Check(scale.ptr()) == 1;
    if (!many) {
        const double number = as_number("scale", scale);
        if (!std::isfinite(number))
            throw NonFiniteError("scale is " + shown(number) +
                                 "; expected a finite number or one per column of A");
        factors.assign(columns, number);
        return;
    }
    const py::array array = as_array("scale", scale);
    const ConstMatrix values = as_column("scale", array, "(columns,)");
    if (values.rows != columns)
        throw py::value_error("scale has " + std::to_string(values.rows) + " factors; expected " +
                              std::to_string(columns) + ", one per column of A");
    for (std::size_t i = 0; i < columns; ++i) {
        factors.push_back(value_at(values, i, 0));
        if (!std::isfinite(factors[i]))
            throw NonFiniteError("scale contains " + kind_of(factors[i]) + " at [" +
                                 std::to_string(i) + "]; expected finite values");
    }
}

bool all_finite(const double* values, std::size_t count) noexcept {
    return dense_kernels<double>().all_finite(values, count);
}

void raise_not_finite(const char* A_name, const ConstMatrix& A, const char* B_name,
                      const ConstMatrix* B, const GramOptions& options) {
    check_finite(A_name, A, options.n_threads);
    if (B) check_finite(B_name, *B, options.n_threads);
    if (!options.scale.empty())
        throw NonFiniteError(std::string(A_name) + (B ? std::string(" or ") + B_name : "") +
                             " or scale has values whose products overflow; convert " + A_name +
                             " to float64 or take a smaller scale");
    const bool narrow = fits_float(A.dtype) && !(B && !fits_float(B->dtype));
    throw NonFiniteError(std::string(A_name) + (B ? std::string(" or ") + B_name : "") +
                         (options.sample_weight ? " or sample_weight" : "") +
                         " has values whose products overflow " +
                         (narrow ? "float32; convert it to float64 or scale its columns"
                                 : "float64; scale its columns"));
}

void raise_singular(const NotPositiveDefinite& error, const Ridge& ridge) {
    std::string message = error.what();
    if (ridge.relative && ridge.eps > 0 && !(error.ridge > 0))
        message +=
            "; the mean of its diagonal is not positive, so no relative eps helps: pass an "
            "absolute eps with relative=False";
    else
        message += "; raise eps (now " + shown(ridge.eps) +
                   (ridge.relative ? ", relative to the mean of the diagonal" : "") +
                   "), or drop constant, duplicated or tiny columns";
    py::set_error(py::module_::import("numpy.linalg").attr("LinAlgError"), message.c_str());
    throw py::error_already_set();
}

}  // namespace bpls::python
