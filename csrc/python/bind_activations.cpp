// The list of activations; their forward, inverse and derivatives on arrays of any shape.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "arguments.hpp"
#include "register.hpp"

namespace bpls::python {
namespace {

// Calls kernel(in, out, rows, cols) in the array's type, without the GIL. The last axis is the row.
template <class F>
py::array apply(const char* name, Activation activation, const py::object& values, F&& kernel) {
    const py::array given = as_array(name, values);
    if (const ActivationInfo& info = info_of(activation); !info.elementwise && given.ndim() == 0)
        throw py::value_error(std::string(name) + " has no dimension; " + info.name +
                              " expects at least one");
    const auto cols = static_cast<std::size_t>(given.ndim() ? given.shape(given.ndim() - 1) : 1);
    const std::size_t rows = cols ? static_cast<std::size_t>(given.size()) / cols : 0;
    const std::vector<py::ssize_t> shape(given.shape(), given.shape() + given.ndim());
    const auto run = [&]<class T>(T) {
        // In C order and aligned; copied only if the argument is not.
        const auto in = py::array_t<T, py::array::c_style | py::array::forcecast>::ensure(given);
        if (!in) throw py::error_already_set();
        py::array_t<T> out(shape);
        const T* from = in.data();
        T* to = out.mutable_data();
        const py::gil_scoped_release release;
        kernel(from, to, rows, cols);
        return out;
    };
    if (given.itemsize() == sizeof(float)) return run(float());
    return run(double());
}

py::array forward_(const py::object& activation, const py::object& z, const py::object& n_threads) {
    const Activation which = as_activation(activation);
    const int threads = as_threads(n_threads);
    return apply("z", which, z, [=](const auto* in, auto* out, std::size_t rows, std::size_t cols) {
        forward(which, in, out, rows, cols, threads);
    });
}

py::array derivative_(const py::object& activation, const py::object& z,
                      const py::object& n_threads) {
    const Activation which = as_activation(activation);
    const int threads = as_threads(n_threads);
    return apply("z", which, z, [=](const auto* in, auto* out, std::size_t rows, std::size_t cols) {
        derivative(which, in, out, rows, cols, threads);
    });
}

py::array jacobian_(const py::object& activation, const py::object& v, const py::object& n,
                    const py::object& n_threads) {
    const Activation which = as_activation(activation);
    const int threads = as_threads(n_threads);
    const py::array values = as_array("n", n), given = as_array("v", v);
    if (values.ndim() != given.ndim() ||
        !std::equal(values.shape(), values.shape() + values.ndim(), given.shape()))
        throw py::value_error("n has shape " + shape_of(values) + "; expected that of v, " +
                              shape_of(given));
    if (values.itemsize() != given.itemsize())
        throw py::type_error("n has dtype " + std::string(py::str(py::object(values.dtype()))) +
                             "; expected that of v, " +
                             std::string(py::str(py::object(given.dtype()))));
    const auto of = [&]<class T>(T) {
        const auto at = py::array_t<T, py::array::c_style | py::array::forcecast>::ensure(values);
        if (!at) throw py::error_already_set();
        const T* n_data = at.data();
        return apply("v", which, v,
                     [=](const auto* in, auto* out, std::size_t rows, std::size_t cols) {
                         if constexpr (std::is_same_v<decltype(out), T*>)
                             jacobian(which, in, n_data, out, rows, cols, threads);
                     });
    };
    return given.itemsize() == sizeof(float) ? of(float()) : of(double());
}

py::array squared_slopes_(const py::object& activation, const py::object& n,
                          const py::object& n_threads) {
    const Activation which = as_activation(activation);
    const int threads = as_threads(n_threads);
    const py::array given = as_array("n", n);
    if (given.ndim() != 2)
        throw py::value_error("n has " + std::to_string(given.ndim()) + " dimensions; expected 2");
    const auto rows = static_cast<std::size_t>(given.shape(0));
    const auto cols = static_cast<std::size_t>(given.shape(1));
    const auto of = [&]<class T>(T) {
        const auto in = py::array_t<T, py::array::c_style | py::array::forcecast>::ensure(given);
        if (!in) throw py::error_already_set();
        py::array_t<double> sums(given.shape(1));
        const T* values = in.data();
        double* out = sums.mutable_data();
        const py::gil_scoped_release release;
        squared_slopes(which, values, out, rows, cols, threads);
        return sums;
    };
    if (given.itemsize() == sizeof(float)) return of(float());
    return of(double());
}

py::array inverse_(const py::object& activation, const py::object& n, const py::object& margin,
                   const py::object& n_threads) {
    const Activation which = as_activation(activation);
    const int threads = as_threads(n_threads);
    const double given = margin.is_none() ? 0 : as_number("margin", margin);
    if (!margin.is_none() && !(given > 0 && given < 0.5))
        throw py::value_error("margin is " + std::string(py::str(margin)) +
                              "; expected a number above 0 and below 0.5");
    return apply("n", which, n, [=](const auto* in, auto* out, std::size_t rows, std::size_t cols) {
        using T = std::remove_pointer_t<decltype(out)>;
        using limits = std::numeric_limits<T>;
        const T clip =
            given == 0 ? limits::epsilon() : std::max(static_cast<T>(given), limits::min());
        inverse(which, in, out, rows, cols, clip, threads);
    });
}

}  // namespace

void register_activations(py::module_& module) {
    module.def("activations", [] {
        py::list all;
        for (const ActivationInfo& info : activation_list)
            all.append(py::make_tuple(info.name, py::make_tuple(info.domain.low, info.domain.high),
                                      py::make_tuple(info.range.low, info.range.high),
                                      info.injective));
        return all;
    });
    module.def("forward", &forward_);
    module.def("derivative", &derivative_);
    module.def("inverse", &inverse_);
    module.def("jacobian", &jacobian_);
    module.def("squared_slopes", &squared_slopes_);
}

}  // namespace bpls::python
