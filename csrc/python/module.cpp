// The extension module. It only registers; an invalid environment variable fails the import.
#include <pybind11/pybind11.h>

#include <stdexcept>

#include "bpls/config.hpp"
#include "bpls/errors.hpp"
#include "register.hpp"

PYBIND11_MODULE(_core, module) {
    try {
        bpls::active_level();
        bpls::default_threads();
    } catch (const std::invalid_argument& error) {
        throw pybind11::import_error(error.what());
    }
    pybind11::register_exception<bpls::NonFiniteError>(module, "NonFiniteError", PyExc_ValueError)
        .attr("__module__") = "bpls_fast";  // where the package exports it
    bpls::python::register_config(module);
    bpls::python::register_dispatch(module);
    bpls::python::register_gram(module);
    bpls::python::register_solve(module);
    bpls::python::register_linear(module);
    bpls::python::register_rows(module);
    bpls::python::register_predictor(module);
    bpls::python::register_activations(module);
    bpls::python::register_bench(module);
}
