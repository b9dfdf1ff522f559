// take_rows and clip_rows.
#include <cstdint>
#include <span>

#include "arguments.hpp"
#include "output.hpp"
#include "register.hpp"

namespace bpls::python {
namespace {

void take_rows_(py::handle X_, const py::array_t<std::int64_t, py::array::c_style>& rows,
                py::array& out, py::handle n_threads) {
    const py::array X = as_array("X", X_, Accepts::all_types);
    const ConstMatrix source = as_matrix("X", X);
    if (out.dtype().num() != X.dtype().num() || out.ndim() != 2 || out.shape(0) != rows.size() ||
        out.shape(1) != X.shape(1) || !(out.flags() & py::array::c_style))
        throw py::value_error("out has shape " + written(shape_of(out)) + "; expected (" +
                              std::to_string(rows.size()) + ", " + std::to_string(source.cols) +
                              "), C-contiguous and of X's dtype");
    const int threads = as_threads(n_threads);
    auto* to = static_cast<unsigned char*>(out.mutable_data());
    const std::span<const std::int64_t> chosen(rows.data(), static_cast<std::size_t>(rows.size()));
    const py::gil_scoped_release release;
    take_rows(source, chosen, threads, to);
}

// Returns None where X holds NaN or infinity.
py::object clip_rows_(py::handle X_, py::handle limits_, py::handle n_threads) {
    const py::array X = as_array("X", X_, Accepts::all_types);
    const ConstMatrix source = as_matrix("X", X);
    const py::array limits = as_contiguous(as_array("limits", limits_));
    const DType wanted = source.dtype == DType::f64 ? DType::f64 : DType::f32;
    if (limits.ndim() != 2 || limits.shape(0) != 2 || limits.shape(1) != X.shape(1))
        throw py::value_error("limits has shape " + written(shape_of(limits)) + "; expected (2, " +
                              std::to_string(source.cols) + "), two for each column of X");
    if (dtype_of_array(limits) != wanted)
        throw py::type_error("limits has dtype " + dtype_name(limits) + "; expected " +
                             name_of(wanted) + ", as the result");
    const int threads = as_threads(n_threads);
    check_size("X", source.rows, source.cols);
    py::array out = new_array(wanted, shape_of(X));
    bool finite = true;
    const auto run = [&]<class T>(T* to) {
        const T* lower = static_cast<const T*>(limits.data());
        const py::gil_scoped_release release;
        finite = clip_rows(source, lower, lower + source.cols, threads, to);
    };
    if (wanted == DType::f32)
        run(static_cast<float*>(out.mutable_data()));
    else
        run(static_cast<double*>(out.mutable_data()));
    return finite ? py::object(out) : py::none();
}

}  // namespace

void register_rows(py::module_& module) {
    module.def("take_rows", &take_rows_);
    module.def("clip_rows", &clip_rows_);
}

}  // namespace bpls::python
