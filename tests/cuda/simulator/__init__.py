"""Tests of the GPU's kernels in numba-cuda's simulator."""
