"""Prediction and its competitors as pytest-benchmark groups; every row asserts its outputs.

One row also has its time in C++ alone, beside what its multiply-adds take at the measured peak and how long reading the
weights takes. `python bench/ratios.py --only prediction` prints the same rounds as one table.
"""

from interleaved import record_case, recorded
from kernel_cases import Case
from parameters import parameters
from prediction_cases import PREDICTION
from pytest_benchmark.fixture import BenchmarkFixture

pytestmark = recorded


@parameters(PREDICTION)
def test_predict(benchmark: BenchmarkFixture, case: Case, n_threads: int, contender: str) -> None:
    record_case(benchmark, "prediction", case, n_threads, contender)
