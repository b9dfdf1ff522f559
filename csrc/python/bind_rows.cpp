// take_rows.
#include <cstdint>
#include <span>

#include "arguments.hpp"
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

}  // namespace

void register_rows(py::module_& module) { module.def("take_rows", &take_rows_); }

}  // namespace bpls::python
