// Python arguments to views and numbers. Everything is checked here, while the GIL is held; an error names the argument,
// what came and what is expected.
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
enum class Accepts { floats, bytes_and_floats };

// An argument as a NumPy array: an array as it is, anything else as numpy.asarray makes it. Checks the dtype.
py::array as_array(const char* name, const py::object& value, Accepts accepts = Accepts::floats);

// A 2-D array with at least one column. The view lives as long as the array.
ConstMatrix as_matrix(const char* name, const py::array& array);

// The matrices of a 3-D array: the view of the first one; the others follow at array.strides(0).
ConstMatrix as_matrices(const char* name, const py::array& array);

void check_rows(const char* name, const ConstMatrix& matrix, std::size_t rows, const char* why);
void check_square(const char* name, const ConstMatrix& matrix);
// Finite, and symmetric up to symmetry_tolerance. Here and below, `system`, where not negative, is the matrix's place in a batch.
void check_symmetric(const char* name, const ConstMatrix& matrix, int n_threads,
                     std::ptrdiff_t system = -1);
void check_finite(const char* name, const ConstMatrix& matrix, int n_threads,
                  std::ptrdiff_t system = -1);

// Throws where an output of this shape could not even be addressed.
void check_size(const char* name, std::size_t rows, std::size_t cols);

int as_threads(const py::object& n_threads);
bool as_flag(const char* name, const py::object& value);
Ridge as_ridge(const py::object& eps, const py::object& relative);
double as_number(const char* name, const py::object& value);
Activation as_activation(const py::object& name);

// sample_weight: finite values >= 0, one per row, or None.
class GramWeights {
 public:
    GramWeights(const py::object& sample_weight, std::size_t rows);

    std::optional<ConstMatrix> column;

 private:
    py::object array_;  // what the column lies in
};

// scale: a finite number or one for each of A's columns, or None.
class GramScale {
 public:
    GramScale(const py::object& scale, std::size_t columns);

    std::vector<double> factors;  // empty for None
};

std::string shape_of(const py::array& array);

// Whether `count` values of a result, `step` apart, are finite.
bool all_finite(const double* values, std::size_t count, std::size_t step = 1);

// Called when a result is not finite: raises ValueError for the first argument that holds a NaN or an infinity, or,
// where both are finite, for an overflow.
[[noreturn]] void raise_not_finite(const char* A_name, const ConstMatrix& A, const char* B_name,
                                   const ConstMatrix* B, const GramOptions& options);

[[noreturn]] void raise_singular(const NotPositiveDefinite& error, const Ridge& ridge);

}  // namespace bpls::python
