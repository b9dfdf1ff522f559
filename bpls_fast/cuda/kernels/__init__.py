"""The kernels of `bpls_fast.kernels`, by the same names and in files of the same names, on the GPU.

Arguments are checked before anything is launched. Results are on the device if an argument was, else on the host. The
same input gives the same bits: the order of every sum depends on the shapes alone.
"""

from bpls_fast.cuda.kernels.activations import activations
from bpls_fast.cuda.kernels.layers import linear, residual, tangent, target
from bpls_fast.cuda.kernels.products import cross, gram
from bpls_fast.cuda.kernels.rows import check_finite, clip_rows, column_sums, missed, take_rows
from bpls_fast.cuda.kernels.systems import solve, solve_batched, solve_layer

__all__ = [
    "activations",
    "check_finite",
    "clip_rows",
    "column_sums",
    "cross",
    "gram",
    "linear",
    "missed",
    "residual",
    "solve",
    "solve_batched",
    "solve_layer",
    "take_rows",
    "tangent",
    "target",
]
