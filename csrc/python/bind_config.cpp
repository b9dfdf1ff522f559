// The version, the levels and the number of threads.
#include <algorithm>

#include "bpls/bpls.h"
#include "bpls/config.hpp"
#include "register.hpp"

namespace bpls::python {

namespace py = pybind11;

void register_config(py::module_& module) {
    module.attr("__version__") = version();
    module.def("config", [] {
        py::list compiled, supported;
        py::dict flags, fallback;
        const auto name_of_level = [](Isa isa) {
            return std::ranges::find(levels(), isa, &Level::isa)->name;
        };
        for (const Level& level : levels()) {
            compiled.append(level.name);
            if (level.supported) supported.append(level.name);
            flags[level.name] = level.flags;
            fallback[level.name] = name_of_level(level.fallback);
        }
        py::dict isa;
        isa["compiled"] = compiled;
        isa["supported"] = supported;
        isa["active"] = active_level().name;
        isa["fallback"] = fallback;
        py::dict all;
        all["version"] = version();
        all["compiler"] = compiler();
        all["build"] = build_flags();
        all["flags"] = flags;
        all["isa"] = isa;
        all["threads"] = default_threads();
        return all;
    });
    // Through the C functions, so that the extension contains them for threadpoolctl.
    module.def("get_num_threads", &bpls_get_num_threads);
    module.def("set_num_threads", [](int n_threads) {
        if (bpls_set_num_threads(n_threads) != BPLS_OK) throw py::value_error(bpls_last_error());
    });
}

}  // namespace bpls::python
