// One layer forward: act(A W + b).
#pragma once

#include "bpls/activation.hpp"
#include "bpls/matrix.hpp"

namespace bpls {

struct LinearOptions {
    bool bias = false;  // W has one row more than A has columns: the bias
    Activation activation = Activation::identity;
    int n_threads = 0;  // 0: default_threads()
};

// out = act(A W + b), A.rows x W.cols in row-major order, of type T: float where W is float32 and A is uint8 or float32,
// double otherwise; any other T throws std::invalid_argument. A row's bits do not depend on the other rows.
//
// Returns whether the first pre-activation of every row is finite. It is not in a row of A that is not; so `true` says
// that A is finite if W is, without a pass over A for it.
template <class T>
bool linear(const ConstMatrix& A, const ConstMatrix& W, const LinearOptions& options, T* out);

}  // namespace bpls
