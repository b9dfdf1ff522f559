// Environment variables as strings. A variable that is not set is empty.
#pragma once

#include <cstdlib>
#include <string>

namespace bpls {

inline std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

}  // namespace bpls
