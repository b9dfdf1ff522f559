"""mypy's check that the kernels of every backend satisfy `Kernels`.

Nothing imports this file: inside an import cycle mypy does not compare modules with a protocol.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bpls_fast import kernels as cpu_kernels
    from bpls_fast.cuda import kernels as cuda_kernels
    from bpls_fast.kernels.protocol import Kernels

    CPU: Kernels = cpu_kernels
    CUDA: Kernels = cuda_kernels
