// The list of activations; their forward, inverse and derivatives on arrays of any shape.
#include <algorithm>
#include <limits>

#include "arguments.hpp"
#include "fast_call.hpp"
#include "gil.hpp"
#include "output.hpp"
#include "register.hpp"

namespace bpls::python {
namespace {

// An argument of an activation as rows of values; the last axis is the row.
struct Rows {
    py::array given;
    py::array contiguous;
    std::size_t rows, cols;

    Rows(const char* name, Activation activation, py::handle values)
        : given(as_array(name, values)), contiguous(as_contiguous(given)) {
        if (const ActivationInfo& info = info_of(activation);
            !info.elementwise && given.ndim() == 0)
            throw py::value_error(std::string(name) + " has no dimension; " + info.name +
                                  " expects at least one");
        cols = given.ndim() ? static_cast<std::size_t>(shape_of(given).back()) : 1;
        rows = cols ? static_cast<std::size_t>(given.size()) / cols : 0;
    }

    DType dtype() const { return dtype_of_array(given); }
    template <class T>
    const T* data() const {
        return static_cast<const T*>(contiguous.data());
    }
};

// Calls call.operator()<T>() in the type of the values, without the GIL.
template <class F>
void in_type_of(const Rows& values, F&& call) {
    const WithoutGil released(values.rows, values.cols, activation_multiply_adds);
    if (values.dtype() == DType::f32)
        call.template operator()<float>();
    else
        call.template operator()<double>();
}

// Calls kernel(activation, in, out, rows, cols, threads) with one argument; `out` may be the argument itself.
template <class F>
py::object apply(py::handle activation, const char* name, py::handle values, py::handle out_,
                 py::handle n_threads, F&& kernel) {
    const Activation which = as_activation(activation);
    const int threads = as_threads(n_threads);
    const Rows in(name, which, values);
    Output out("out", out_, in.dtype(), shape_of(in.given));
    out.check_apart_or_same(name, in.given);
    in_type_of(in, [&]<class T>() {
        kernel(which, in.data<T>(), static_cast<T*>(out.data()), in.rows, in.cols, threads);
    });
    return out.array();
}

py::object forward_(py::handle activation, py::handle z, py::handle out, py::handle n_threads) {
    return apply(activation, "z", z, out, n_threads, [](auto... of) { forward(of...); });
}

py::object derivative_(py::handle activation, py::handle z, py::handle out, py::handle n_threads) {
    return apply(activation, "z", z, out, n_threads, [](auto... of) { derivative(of...); });
}

py::object inverse_(py::handle activation, py::handle n, py::handle margin, py::handle out,
                    py::handle n_threads) {
    const double given = margin.is_none() ? 0 : as_number("margin", margin);
    if (!margin.is_none() && !(given > 0 && given < 0.5))
        throw py::value_error("margin is " + std::string(py::str(margin)) +
                              "; expected a number above 0 and below 0.5");
    const auto kernel = [=]<class T>(Activation which, const T* in, T* to, std::size_t rows,
                                     std::size_t cols, int threads) {
        using limits = std::numeric_limits<T>;
        const T clip =
            given == 0 ? limits::epsilon() : std::max(static_cast<T>(given), limits::min());
        inverse(which, in, to, rows, cols, clip, threads);
    };
    return apply(activation, "n", n, out, n_threads, kernel);
}

py::object jacobian_(py::handle activation, py::handle v_, py::handle n_, py::handle out_,
                     py::handle n_threads) {
    const Activation which = as_activation(activation);
    const int threads = as_threads(n_threads);
    const Rows n("n", which, n_), v("v", which, v_);
    if (!std::ranges::equal(shape_of(n.given), shape_of(v.given)))
        throw py::value_error("n has shape " + written(shape_of(n.given)) +
                              "; expected that of v, " + written(shape_of(v.given)));
    if (n.dtype() != v.dtype())
        throw py::type_error("n has dtype " + dtype_name(n.given) + "; expected that of v, " +
                             dtype_name(v.given));
    Output out("out", out_, v.dtype(), shape_of(v.given));
    out.check_apart_or_same("v", v.given);
    out.check_apart_or_same("n", n.given);
    in_type_of(v, [&]<class T>() {
        jacobian(which, v.data<T>(), n.data<T>(), static_cast<T*>(out.data()), v.rows, v.cols,
                 threads);
    });
    return out.array();
}

py::object squared_slopes_(py::handle activation, py::handle n_, py::handle n_threads) {
    const Activation which = as_activation(activation);
    const int threads = as_threads(n_threads);
    const Rows n("n", which, n_);
    if (n.given.ndim() != 2)
        throw py::value_error("n has " + std::to_string(n.given.ndim()) +
                              " dimensions; expected 2");
    py::array sums = new_array(DType::f64, shape_of(n.given).last(1));
    auto* data = static_cast<double*>(sums.mutable_data());
    in_type_of(
        n, [&]<class T>() { squared_slopes(which, n.data<T>(), data, n.rows, n.cols, threads); });
    return sums;
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
    define<forward_>(module, "forward", "forward(activation, z, out, n_threads, /)\n--\n\n");
    define<derivative_>(module, "derivative",
                        "derivative(activation, z, out, n_threads, /)\n--\n\n");
    define<inverse_>(module, "inverse",
                     "inverse(activation, n, margin, out, n_threads, /)\n--\n\n");
    define<jacobian_>(module, "jacobian", "jacobian(activation, v, n, out, n_threads, /)\n--\n\n");
    define<squared_slopes_>(module, "squared_slopes",
                            "squared_slopes(activation, n, n_threads, /)\n--\n\n");
}

}  // namespace bpls::python
