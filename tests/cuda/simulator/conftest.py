"""The GPU's kernels, thread by thread in Python: NUMBA_ENABLE_CUDASIM=1 pytest tests/cuda/simulator."""

from tests.cuda import scheduler

scheduler.install()
