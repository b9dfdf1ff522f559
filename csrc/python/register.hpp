// What each bind_*.cpp adds to the module.
#pragma once

#include <pybind11/pybind11.h>

namespace bpls::python {

void register_config(pybind11::module_& module);
void register_dispatch(pybind11::module_& module);
void register_gram(pybind11::module_& module);
void register_solve(pybind11::module_& module);
void register_linear(pybind11::module_& module);
void register_rows(pybind11::module_& module);
void register_predictor(pybind11::module_& module);
void register_activations(pybind11::module_& module);
void register_bench(pybind11::module_& module);

}  // namespace bpls::python
