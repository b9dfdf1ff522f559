// Everything the library offers.
#pragma once

#include "bpls/activation.hpp"
#include "bpls/config.hpp"
#include "bpls/gram.hpp"
#include "bpls/linear.hpp"
#include "bpls/matrix.hpp"
#include "bpls/network.hpp"
#include "bpls/predictor.hpp"
#include "bpls/rows.hpp"
#include "bpls/solve.hpp"
