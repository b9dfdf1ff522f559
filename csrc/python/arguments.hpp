// Converts Python arguments to views and numbers. Everything is checked here; an error names the argument, its value and what
// is expected. A message is built only where it is thrown: the checks of a good call allocate nothing.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bpls/bpls.hpp"

namespace bpls::python {

namespace py = pybind11;

// The types an argument may have.
enum class Accepts { floats, all_types };

using Shape = std::span<const py::ssize_t>;

inline Shape shape_of(const py::array& array) noexcept {
    return {array.shape(), static_cast<std::size_t>(array.ndim())};
}

// What messages call things: "(3, 4)", "float32", "list".
std::string written(Shape shape);
std::string name_of(DType dtype);
std::string dtype_name(const py::array& array);
std::string type_name(py::handle value);

// Returns the element type of an array, if matrices have it.
std::optional<DType> find_dtype(const py::array& array) noexcept;

// Returns an argument as a NumPy array: an array as it is, anything else through numpy.asarray. Checks the dtype.
py::array as_array(const char* name, py::handle value, Accepts accepts = Accepts::floats);

// Returns the element type of an array that as_array() accepted.
inline DType dtype_of_array(const py::array& array) { return *find_dtype(array); }

inline constexpr int contiguous_flags =
    py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_ | py::detail::npy_api::NPY_ARRAY_ALIGNED_;

inline bool is_contiguous(const py::array& array) noexcept {
    return (array.flags() & contiguous_flags) == contiguous_flags;
}

// Returns the array if it is C-contiguous and aligned, otherwise a copy that is.
py::array as_contiguous(const py::array& array);

// Returns a view of a 2-D array, which must have at least one column. The view is valid as long as the array exists.
ConstMatrix as_matrix(const char* name, const py::array& array);

// Returns a view of the first matrix of a 3-D array; the others follow at array.strides(0).
ConstMatrix as_matrices(const char* name, const py::array& array);

void check_rows(const char* name, const ConstMatrix& matrix, std::size_t rows, const char* why);
void check_square(const char* name, const ConstMatrix& matrix);
// Checks that a matrix is finite, and symmetric up to symmetry_tolerance. Here and below, `system` is the number of the matrix
// in a batch, or negative; the GIL is not needed.
void check_symmetric(const char* name, const ConstMatrix& matrix, int n_threads,
                     std::ptrdiff_t system = -1);
void check_finite(const char* name, const ConstMatrix& matrix, int n_threads,
                  std::ptrdiff_t system = -1);

// Throws if memory cannot address an output of this shape.
void check_size(const char* name, std::size_t rows, std::size_t cols);

int as_threads(py::handle n_threads);
bool as_flag(const char* name, py::handle value);
Ridge as_ridge(py::handle eps, py::handle relative);
double as_number(const char* name, py::handle value);
Activation as_activation(py::handle name);

// The argument sample_weight: finite values >= 0, one per row, or None. The values are checked only on request.
class GramWeights {
 public:
    GramWeights(py::handle sample_weight, std::size_t rows, bool checks_values);

    std::optional<py::array> array;
    std::optional<ConstMatrix> column;  // a view of the array
};

// The argument scale: a finite number, or one for each column of A, or None.
class GramScale {
 public:
    GramScale(py::handle scale, std::size_t columns);

    std::vector<double> factors;  // empty for None
};

// Returns whether `count` values of a result are finite.
bool all_finite(const double* values, std::size_t count) noexcept;

// Called when a result is not finite: throws NonFiniteError for the first argument that holds NaN or infinity, or, if both are
// finite, for an overflow. The GIL is not needed.
[[noreturn]] void raise_not_finite(const char* A_name, const ConstMatrix& A, const char* B_name,
                                   const ConstMatrix* B, const GramOptions& options);

[[noreturn]] void raise_singular(const NotPositiveDefinite& error, const Ridge& ridge);

}  // namespace bpls::python
