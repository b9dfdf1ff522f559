"""The kernels: Gram matrices, layer solves and the forward product, on the compiled core.

The rest of bpls_fast imports the compiled extension through this package only. Every kernel checks its arguments,
names the one that is wrong, and changes none of them but `out`. It releases the GIL unless its work is a matter of
microseconds, and the bits of its result do not depend on the number of threads. Arrays are read in place: any strides,
read-only or not, without a copy.

Arguments that all of them share
--------------------------------
backend : {"auto", "cpu", "cuda"}
    Where the call runs; "auto" is where its arrays are. Arrays of the GPU are read without a copy, and their results
    are arrays of the GPU (`bpls_fast.cuda.Array`). With "cuda", NumPy's arrays are moved there and the result back.
out : array, optional
    The array to write to and to return: C-contiguous, writeable and aligned, with the dtype and shape of the result,
    not overlapping an input. It is not changed if the call raises, unless `check_finite` is False.
check_finite : bool
    Whether the values are checked, as in SciPy. Without the check a call saves a pass over some of its arguments, and
    NaN and infinities propagate as in IEEE arithmetic.
n_threads : int, optional
    Threads of this call on the CPU. The default is what threadpoolctl set, else `BPLS_NUM_THREADS`, else
    `OMP_NUM_THREADS`, else the CPUs of the process, by its affinity and its control group's quota. Calls at the
    same time share these threads. A forked child has threads of its own.

Errors that all of them raise
-----------------------------
TypeError
    An array has another dtype than those named, or an argument is not a number where one is expected.
ValueError
    A shape does not fit, or there are no columns.
NonFiniteError
    An argument holds NaN or infinity, or the products of its finite values overflow; `linear` returns the infinities of
    IEEE arithmetic instead. It is a ValueError.
"""

from bpls_fast._core import NonFiniteError, PackedNetwork
from bpls_fast.kernels.activations import Activation, activations
from bpls_fast.kernels.layers import linear, linear_bytes, residual, tangent, target
from bpls_fast.kernels.products import cross, gram
from bpls_fast.kernels.rows import check_finite, clip_rows, column_sums, missed, take_rows
from bpls_fast.kernels.systems import solve, solve_batched, solve_layer

__all__ = [
    "Activation",
    "NonFiniteError",
    "PackedNetwork",
    "activations",
    "check_finite",
    "clip_rows",
    "column_sums",
    "cross",
    "gram",
    "linear",
    "linear_bytes",
    "missed",
    "residual",
    "solve",
    "solve_batched",
    "solve_layer",
    "take_rows",
    "tangent",
    "target",
]
