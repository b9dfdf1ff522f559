// Converts Python arguments to views and numbers. Everything is checked here, while the GIL is held; an error names the
// argument, its value and what is expected.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <optional>
#include <string>
#include <vector>

#include "bpls/bpls.hpp"

namespace bpls::python {

namespace py = pybind11;

// The types an argument may have.
enum class Accepts { floats, all_types };

// Returns the element type of arrays of this type, if matrices have it.
std::optional<DType> find_dtype(const py::dtype& dtype);

// Returns an argument as a NumPy array: an array as it is, anything else through numpy.asarray. Checks the dtype.
py::array as_array(const char* name, const py::object& value, Accepts accepts = Accepts::floats);

// Returns a view of a 2-D array, which must have at least one column. The view is valid as long as the array exists.
ConstMatrix as_matrix(const char* name, const py::array& array);

// Returns a view of the first matrix of a 3-D array; the others follow at array.strides(0).
ConstMatrix as_matrices(const char* name, const py::array& array);

void check_rows(const char* name, const ConstMatrix& matrix, std::size_t rows, const char* why);
void check_square(const char* name, const ConstMatrix& matrix);
// Checks that a matrix is finite, and symmetric up to symmetry_tolerance. Here and below, `system` is the number of the matrix
// in a batch, or negative.
void check_symmetric(const char* name, const ConstMatrix& matrix, int n_threads,
                     std::ptrdiff_t system = -1);
void check_finite(const char* name, const ConstMatrix& matrix, int n_threads,
                  std::ptrdiff_t system = -1);

// Throws if memory cannot address an output of this shape.
void check_size(const char* name, std::size_t rows, std::size_t cols);

int as_threads(const py::object& n_threads);
bool as_flag(const char* name, const py::object& value);
Ridge as_ridge(const py::object& eps, const py::object& relative);
double as_number(const char* name, const py::object& value);
Activation as_activation(const py::object& name);

// The argument sample_weight: finite values >= 0, one per row, or None.
class GramWeights {
 public:
    GramWeights(const py::object& sample_weight, std::size_t rows);

    std::optional<ConstMatrix> column;

 private:
    py::object array_;  // owns the column
};

// The argument scale: a finite number, or one for each column of A, or None.
class GramScale {
 public:
    GramScale(const py::object& scale, std::size_t columns);

    std::vector<double> factors;  // empty for None
};

std::string shape_of(const py::array& array);

// Returns whether `count` values of a result, `step` apart, are finite.
bool all_finite(const double* values, std::size_t count, std::size_t step = 1);

// Called when a result is not finite: throws NonFiniteError for the first argument that holds NaN or infinity, or, if both are
// finite, for an overflow.
[[noreturn]] void raise_not_finite(const char* A_name, const ConstMatrix& A, const char* B_name,
                                   const ConstMatrix* B, const GramOptions& options);

[[noreturn]] void raise_singular(const NotPositiveDefinite& error, const Ridge& ridge);

}  // namespace bpls::python
