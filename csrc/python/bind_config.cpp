// Version, levels and threads.
#include "bpls/config.hpp"
#include "register.hpp"

namespace bpls::python {

namespace py = pybind11;

void register_config(py::module_& module) {
    module.attr("__version__") = version();
    module.def("config", [] {
        py::list compiled, supported;
        py::dict flags;
        for (const Level& level : levels()) {
            compiled.append(level.name);
            if (level.supported) supported.append(level.name);
            flags[level.name] = level.flags;
        }
        py::dict isa;
        isa["compiled"] = compiled;
        isa["supported"] = supported;
        isa["active"] = active_level().name;
        py::dict all;
        all["version"] = version();
        all["compiler"] = compiler();
        all["build"] = build_flags();
        all["flags"] = flags;
        all["isa"] = isa;
        all["openmp"] = has_openmp();
        all["threads"] = default_threads();
        return all;
    });
}

}  // namespace bpls::python
