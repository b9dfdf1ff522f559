// The exceptions that are not specific to one header.
#pragma once

#include <stdexcept>

#include "bpls/export.h"

namespace bpls {

// An argument holds NaN or infinity, or finite values whose results overflow.
class BPLS_API NonFiniteError : public std::invalid_argument {
 public:
    using std::invalid_argument::invalid_argument;
};

}  // namespace bpls
