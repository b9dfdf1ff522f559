"""The kernels and their competitors as pytest-benchmark groups, one per kernel, size and number of threads.

Every row asserts its answer, and records its error and our part of the peak measured beside it.
`BPLS_BENCH_SMALL=1 pytest bench --benchmark-disable` is a smoke test; ratios.py prints the same rounds as one table.
"""

import pytest
from interleaved import group_of, record, record_case, recorded
from kernel_cases import AT_EVERY_LEVEL, CASES, SCALING, Case
from levels import LEVELS, rows_at
from parameters import parameters
from pytest_benchmark.fixture import BenchmarkFixture

pytestmark = recorded


@parameters(CASES)
def test_kernel(benchmark: BenchmarkFixture, case: Case, n_threads: int, contender: str) -> None:
    record_case(benchmark, "kernels", case, n_threads, contender)


@parameters(SCALING)
def test_scaling(benchmark: BenchmarkFixture, case: Case, n_threads: int, contender: str) -> None:
    record_case(benchmark, "scaling", case, n_threads, contender)


@pytest.mark.parametrize("level", LEVELS)
@parameters(AT_EVERY_LEVEL)
def test_level(
    benchmark: BenchmarkFixture, level: str, case: Case, n_threads: int, contender: str
) -> None:
    group = group_of(case, n_threads)
    measured = rows_at(level)[f"{group}, {contender}"]
    record(
        benchmark,
        f"{group}, {level}",
        contender,
        suite="levels",
        kernel=case.name,
        threads=n_threads,
        level=level,
        **measured,
    )
