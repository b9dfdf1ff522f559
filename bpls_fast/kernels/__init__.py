"""The kernels: Gram matrices, layer solves and the forward product, on the compiled core.

Every function checks its arguments, names the one that is wrong, and changes none of them. The GIL
is released while it works, and the bits of a result do not depend on the number of threads. Arrays
go in as they lie in memory: any strides, read-only or not, without a copy.

Arguments that all of them share
--------------------------------
backend : {"auto", "cpu", "cuda"}
    Where the call runs: "auto" where its arrays are. Arrays of the GPU are read without a copy and give arrays of the
    GPU (`bpls_fast.cuda.Array`); with "cuda" NumPy's are moved there, and the result back.
n_threads : int, optional
    Threads of this call on the CPU. The default is `BPLS_NUM_THREADS` where that is set, else OpenMP's maximum,
    and never more than a limit that threadpoolctl has lowered since the import. In a forked child
    it is always one.

Errors that all of them raise
-----------------------------
TypeError
    An array of another dtype than those named, or an argument that is no number where one is due.
ValueError
    A shape that does not fit, or no columns.
NonFiniteError
    NaN or infinity in an argument, or finite values whose products overflow, except in `linear`, which returns the
    infinities of IEEE arithmetic. It is a ValueError.
"""

from bpls_fast._core import NonFiniteError
from bpls_fast.kernels.activations import Activation, activations
from bpls_fast.kernels.products import cross, gram, linear, residual, tangent
from bpls_fast.kernels.reductions import column_sums, missed
from bpls_fast.kernels.systems import solve, solve_batched, solve_layer

__all__ = [
    "Activation",
    "NonFiniteError",
    "activations",
    "column_sums",
    "cross",
    "gram",
    "linear",
    "missed",
    "residual",
    "solve",
    "solve_batched",
    "solve_layer",
    "tangent",
]
