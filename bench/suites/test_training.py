"""Training and the same algorithm in other libraries, one group per step, type of data and number of threads.

Every row asserts that its weights are those of the algorithm in float64, up to rounding.
"""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from ..cases.training import FITS, SWEEPS, TRAINING, flat, start
from ..contenders import OURS
from ..measure.case import Case
from ..measure.recording import record_case, recorded
from .parameters import THREADS, parameters

pytestmark = [pytest.mark.usefixtures("fashion"), recorded]


@parameters(SWEEPS)
def test_sweep(benchmark: BenchmarkFixture, case: Case, n_threads: int, contender: str) -> None:
    record_case(benchmark, "training", case, n_threads, contender)


@parameters(FITS, threads=THREADS[-1:])
def test_fit(benchmark: BenchmarkFixture, case: Case, n_threads: int, contender: str) -> None:
    record_case(benchmark, "training", case, n_threads, contender)


@pytest.mark.parametrize("case", TRAINING, ids=lambda case: case.name)
def test_the_weights_of_the_start_are_another_answer(case: Case) -> None:
    with pytest.raises(AssertionError, match="is off by"):
        case.checked_error(OURS, flat(start(case.arrays[0]).weights))
    case.release()
