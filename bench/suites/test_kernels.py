"""Kernels and their competitors, one group per kernel, size and number of threads.

Every row asserts its answer and records its error; ours also records its part of the peak measured in the same rounds.
`python -m bench.ratios` prints the same rounds as one table.
"""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from ..cases.kernels import AFTER_A_PAUSE, AT_EVERY_LEVEL, CASES, SCALING
from ..measure.case import Case
from ..measure.recording import record, record_case, recorded
from ..measure.rounds import group_of
from .levels import LEVELS, rows_at
from .parameters import parameters

pytestmark = recorded


@parameters(CASES)
def test_kernel(benchmark: BenchmarkFixture, case: Case, n_threads: int, contender: str) -> None:
    record_case(benchmark, "kernels", case, n_threads, contender)


@parameters(SCALING)
def test_scaling(benchmark: BenchmarkFixture, case: Case, n_threads: int, contender: str) -> None:
    record_case(benchmark, "scaling", case, n_threads, contender)


@parameters(AFTER_A_PAUSE)
def test_after_a_pause(
    benchmark: BenchmarkFixture, case: Case, n_threads: int, contender: str
) -> None:
    record_case(benchmark, "after a pause", case, n_threads, contender, cold=True)


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
