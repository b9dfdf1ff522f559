"""Training and its competitors as pytest-benchmark groups, one per step, type of data and number of threads.

Every row asserts that its weights are those of the same algorithm in float64, up to rounding.
"""

import pytest
from kernel_cases import OURS, Case, limited
from parameters import parameters
from pytest_benchmark.fixture import BenchmarkFixture
from training_cases import TRAINING, flat, start

pytestmark = pytest.mark.usefixtures("fashion")


@parameters(TRAINING)
def test_training(benchmark: BenchmarkFixture, case: Case, n_threads: int, contender: str) -> None:
    benchmark.group = f"{case.name}, {n_threads} thread(s)"
    with limited(n_threads):
        call = case.call(contender, n_threads)
        result = benchmark.pedantic(call, rounds=case.rounds, warmup_rounds=1)  # type: ignore[no-untyped-call]
    benchmark.extra_info["error"] = case.checked_error(contender, result)


@pytest.mark.parametrize("case", TRAINING, ids=lambda case: case.name)
def test_the_weights_of_the_start_are_another_answer(case: Case) -> None:
    with pytest.raises(AssertionError, match="is off by"):
        case.checked_error(OURS, flat(start(case.arrays[0]).weights))
