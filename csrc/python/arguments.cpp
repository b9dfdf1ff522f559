// The checks and conversions of arguments.hpp.
#include "arguments.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/batch.hpp"
#include "core/finite.hpp"
#include "core/symmetric.hpp"

namespace bpls::python {
namespace {

std::string type_name(const py::handle& value) {
    return py::str(py::type::handle_of(value).attr("__name__"));
}

// The names of the accepted types: "float32 or float64".
std::string expected(Accepts accepts) {
    std::vector<std::string> names;
    for (int i = 0; i < dtype_count; ++i)
        if (const auto dtype = static_cast<DType>(i);
            accepts == Accepts::all_types || is_float(dtype))
            names.push_back(visit_dtype(
                dtype, []<class T>() -> std::string { return py::str(py::dtype::of<T>()); }));
    std::string all = names.front();
    for (std::size_t i = 1; i < names.size(); ++i)
        all += (i + 1 < names.size() ? ", " : " or ") + names[i];
    return all;
}

bool is_accepted(const py::dtype& dtype, Accepts accepts) {
    const std::optional<DType> found = find_dtype(dtype);
    return found && (accepts == Accepts::all_types || is_float(*found));
}

DType dtype_of_array(const py::array& array) { return find_dtype(array.dtype()).value(); }

void check_ndim(const char* name, const py::array& array, int ndim, const char* axes) {
    if (array.ndim() != ndim)
        throw py::value_error(std::string(name) + " has " + std::to_string(array.ndim()) +
                              " dimension(s), shape " + shape_of(array) + "; expected " +
                              std::to_string(ndim) + " " + axes);
}

void check_columns(const char* name, const ConstMatrix& matrix) {
    if (matrix.cols == 0)
        throw py::value_error(std::string(name) + " has no columns; expected at least one");
}

// The index of an element; with the number of its matrix in a batch, unless `system` is negative.
std::string place(std::ptrdiff_t system, std::size_t row, std::size_t col) {
    return "[" + (system < 0 ? "" : std::to_string(system) + ", ") + std::to_string(row) + ", " +
           std::to_string(col) + "]";
}

std::string shown(double value) { return py::str(py::float_(value)); }

// The name of a value that is not finite.
std::string kind_of(double value) { return std::isnan(value) ? "NaN" : "infinity"; }

}  // namespace

std::optional<DType> find_dtype(const py::dtype& dtype) {
    const char order = dtype.byteorder();
    if (order != '=' && order != '|') return {};
    for (int i = 0; i < dtype_count; ++i)
        if (visit_dtype(static_cast<DType>(i), []<class T>() { return py::dtype::num_of<T>(); }) ==
            dtype.num())
            return static_cast<DType>(i);
    return {};
}

std::string shape_of(const py::array& array) { return py::str(array.attr("shape")); }

py::array as_array(const char* name, const py::object& value, Accepts accepts) {
    py::array array;
    if (py::isinstance<py::array>(value)) {
        array = py::reinterpret_borrow<py::array>(value);
    } else {
        try {
            array = py::array(py::module_::import("numpy").attr("asarray")(value));
        } catch (const py::error_already_set& error) {
            if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_ValueError)) throw;
            throw py::type_error(std::string(name) + " is a " + type_name(value) +
                                 " that NumPy cannot make an array of; expected an array of " +
                                 expected(accepts));
        }
    }
    if (!is_accepted(array.dtype(), accepts))
        throw py::type_error(std::string(name) + " has dtype " +
                             std::string(py::str(py::object(array.dtype()))) + "; expected " +
                             expected(accepts) + " in native byte order");
    return array;
}

ConstMatrix as_matrix(const char* name, const py::array& array) {
    check_ndim(name, array, 2, "(rows, columns)");
    const ConstMatrix matrix{static_cast<const unsigned char*>(array.data()),
                             dtype_of_array(array),
                             static_cast<std::size_t>(array.shape(0)),
                             static_cast<std::size_t>(array.shape(1)),
                             array.strides(0),
                             array.strides(1)};
    check_columns(name, matrix);
    return matrix;
}

ConstMatrix as_matrices(const char* name, const py::array& array) {
    check_ndim(name, array, 3, "(systems, rows, columns)");
    const ConstMatrix matrix{static_cast<const unsigned char*>(array.data()),
                             dtype_of_array(array),
                             static_cast<std::size_t>(array.shape(1)),
                             static_cast<std::size_t>(array.shape(2)),
                             array.strides(1),
                             array.strides(2)};
    check_columns(name, matrix);
    return matrix;
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
    {
        const py::gil_scoped_release release;
        if (is_symmetric(matrix, symmetry_tolerance, n_threads)) return;
    }
    check_finite(name, matrix, n_threads, system);
    double difference = 0;
    std::size_t row = 0, col = 0;
    {
        const py::gil_scoped_release release;
        for (std::size_t i = 0; i < matrix.rows; ++i)
            for (std::size_t j = i + 1; j < matrix.cols; ++j) {
                const double apart = std::abs(value_at(matrix, i, j) - value_at(matrix, j, i));
                if (apart <= difference) continue;
                difference = apart;
                row = i;
                col = j;
            }
    }
    throw py::value_error(std::string(name) + " is not symmetric: " + place(system, row, col) +
                          " is " + shown(value_at(matrix, row, col)) + " and " +
                          place(system, col, row) + " is " + shown(value_at(matrix, col, row)) +
                          "; expected a Gram matrix");
}

bool as_flag(const char* name, const py::object& value) {
    if (!py::isinstance<py::bool_>(value) &&
        !py::isinstance(value, py::module_::import("numpy").attr("bool_")))
        throw py::type_error(std::string(name) + " is a " + type_name(value) +
                             "; expected True or False");
    return PyObject_IsTrue(value.ptr()) == 1;
}

void check_finite(const char* name, const ConstMatrix& matrix, int n_threads,
                  std::ptrdiff_t system) {
    std::optional<Place> bad;
    {
        const py::gil_scoped_release release;
        bad = first_nonfinite(matrix, n_threads);
    }
    if (bad)
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

int as_threads(const py::object& n_threads) {
    if (n_threads.is_none()) return 0;
    const std::string wanted =
        "; expected None or an integer from 1 to " + std::to_string(max_threads);
    if (!PyIndex_Check(n_threads.ptr()))
        throw py::type_error("n_threads is a " + type_name(n_threads) + wanted);
    const Py_ssize_t number = PyNumber_AsSsize_t(n_threads.ptr(), nullptr);
    if (number == -1 && PyErr_Occurred()) throw py::error_already_set();
    if (number < 1 || number > max_threads)
        throw py::value_error("n_threads is " + std::string(py::str(n_threads)) + wanted);
    return static_cast<int>(number);
}

double as_number(const char* name, const py::object& value) {
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

Ridge as_ridge(const py::object& eps, const py::object& relative) {
    const double number = as_number("eps", eps);
    if (!(number >= 0) || std::isinf(number))
        throw py::value_error("eps is " + shown(number) + "; expected a finite number >= 0");
    return {number, as_flag("relative", relative)};
}

Activation as_activation(const py::object& name) {
    std::string names;
    for (const ActivationInfo& info : activation_list)
        (names += names.empty() ? "" : ", ") += info.name;
    if (!py::isinstance<py::str>(name))
        throw py::type_error("activation is a " + type_name(name) + "; expected one of the names " +
                             names);
    const std::string wanted = py::str(name);
    if (const ActivationInfo* info = find_activation(wanted)) return info->activation;
    throw py::value_error("activation is '" + wanted + "'; expected one of " + names);
}

GramWeights::GramWeights(const py::object& sample_weight, std::size_t rows) {
    if (sample_weight.is_none()) return;
    const py::array array = as_array("sample_weight", sample_weight);
    array_ = array;
    check_ndim("sample_weight", array, 1, "(rows,)");
    const ConstMatrix weights{static_cast<const unsigned char*>(array.data()),
                              dtype_of_array(array),
                              static_cast<std::size_t>(array.shape(0)),
                              1,
                              array.strides(0),
                              array.itemsize()};
    check_rows("sample_weight", weights, rows, "one per row of A");
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
    column = weights;
}

GramScale::GramScale(const py::object& scale, std::size_t columns) {
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
    check_ndim("scale", array, 1, "(columns,)");
    const ConstMatrix values{static_cast<const unsigned char*>(array.data()),
                             dtype_of_array(array),
                             static_cast<std::size_t>(array.shape(0)),
                             1,
                             array.strides(0),
                             array.itemsize()};
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

bool all_finite(const double* values, std::size_t count, std::size_t step) {
    for (std::size_t i = 0; i < count; ++i)
        if (!std::isfinite(values[i * step])) return false;
    return true;
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
