// All headers of the C++ library.
#pragma once

#include "bpls/activation.hpp"
#include "bpls/config.hpp"
#include "bpls/errors.hpp"
#include "bpls/gram.hpp"
#include "bpls/linear.hpp"
#include "bpls/matrix.hpp"
#include "bpls/network.hpp"
#include "bpls/predictor.hpp"
#include "bpls/rows.hpp"
#include "bpls/solve.hpp"
