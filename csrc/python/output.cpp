// The checks of `out`, and the arrays that are made where it is None.
#include "output.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace bpls::python {
namespace {

using numpy_api = py::detail::npy_api;

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

py::array checked(const char* name_, py::handle out, DType dtype, Shape shape) {
    const auto name = [&] { return std::string(name_); };
    if (!py::isinstance<py::array>(out))
        throw py::type_error(name() + " is a " + type_name(out) +
                             "; expected None or a NumPy array to write to");
    auto array = py::reinterpret_borrow<py::array>(out);
    if (find_dtype(array) != dtype)
        throw py::type_error(name() + " has dtype " + dtype_name(array) + "; expected " +
                             name_of(dtype));
    if (!std::ranges::equal(shape_of(array), shape))
        throw py::value_error(name() + " has shape " + written(shape_of(array)) + "; expected " +
                              written(shape));
    if (!(array.flags() & py::array::c_style))
        throw py::value_error(name() + " is not C-contiguous; expected a C-contiguous array");
    if (!array.writeable())
        throw py::value_error(name() + " is read-only; expected a writeable array");
    if (!(array.flags() & numpy_api::NPY_ARRAY_ALIGNED_))
        throw py::value_error(name() + " is not aligned; expected an aligned array");
    return array;
}

}  // namespace

py::array new_array(DType dtype, Shape shape) {
    const auto& api = numpy_api::get();
    const int number = visit_dtype(dtype, []<class T>() { return py::dtype::num_of<T>(); });
    PyObject* made = api.PyArray_NewFromDescr_(
        api.PyArray_Type_, api.PyArray_DescrFromType_(number), static_cast<int>(shape.size()),
        shape.data(), nullptr, nullptr, 0, nullptr);
    if (!made) throw py::error_already_set();
    return py::reinterpret_steal<py::array>(made);
}

Output::Output(const char* name, py::handle out, DType dtype, Shape shape)
    : name_(name),
      given_(!out.is_none()),
      array_(given_ ? checked(name, out, dtype, shape) : new_array(dtype, shape)) {}

void Output::check_apart(const char* argument, const py::array& array) const {
    if (given_ && overlap(array_, array))
        throw py::value_error(std::string(name_) + " may overlap " + argument +
                              " in memory; expected an array of its own");
}

void Output::check_apart_or_same(const char* argument, const py::array& array) const {
    if (given_ && array_.data() != array.data() && overlap(array_, array))
        throw py::value_error(std::string(name_) + " may overlap " + argument +
                              " in memory; expected " + argument +
                              " itself or an array of its own");
}

WholeOutput::WholeOutput(const char* name, py::handle out, Shape shape, bool whole)
    : Output(name, out, DType::f64, shape) {
    if (given() && whole) scratch_ = std::make_unique_for_overwrite<double[]>(size());
}

void WholeOutput::finish() noexcept {
    if (scratch_) std::copy_n(scratch_.get(), size(), in_place());
}

}  // namespace bpls::python
