"""The GPU's kernels, thread by thread in Python: NUMBA_ENABLE_CUDASIM=1 pytest tests/cuda_simulator."""

import cuda_scheduler

cuda_scheduler.install()
