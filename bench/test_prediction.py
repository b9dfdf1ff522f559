"""Prediction and its competitors as pytest-benchmark groups; every row asserts its outputs."""

from interleaved import record_case, recorded
from kernel_cases import Case
from parameters import parameters
from prediction_cases import PREDICTION
from pytest_benchmark.fixture import BenchmarkFixture

pytestmark = recorded


@parameters(PREDICTION)
def test_prediction(
    benchmark: BenchmarkFixture, case: Case, n_threads: int, contender: str
) -> None:
    record_case(benchmark, "prediction", case, n_threads, contender)
