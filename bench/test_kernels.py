"""The kernels and their competitors as pytest-benchmark groups, one per kernel, size and number of threads.

Every row asserts its answer, and records its error and the peak of the arithmetic measured beside it.
`BPLS_BENCH_SMALL=1 pytest bench --benchmark-disable` is a smoke test; ratios.py interleaves the same calls.
"""

import pytest
from kernel_cases import CASES, OURS, Case, limited
from parameters import parameters
from peak import Peaks
from pytest_benchmark.fixture import BenchmarkFixture


@pytest.fixture(scope="module")
def peaks() -> Peaks:
    return Peaks()


@parameters(CASES)
def test_kernel(
    benchmark: BenchmarkFixture, peaks: Peaks, case: Case, n_threads: int, contender: str
) -> None:
    benchmark.group = f"{case.name}, {n_threads} thread(s)"
    with limited(n_threads):
        result = benchmark(case.call(contender, n_threads))
    benchmark.extra_info["error"] = case.checked_error(contender, result)
    if case.operations:
        peaks.measure(case.arithmetic, n_threads)
        benchmark.extra_info["operations"] = case.operations
        benchmark.extra_info["peak"] = peaks.best(case.arithmetic, n_threads)
    if contender == OURS and case.bare:
        benchmark.extra_info["seconds without Python"] = case.bare(*case.arrays, n_threads, 100)
