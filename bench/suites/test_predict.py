"""Prediction and its competitors; every row asserts its outputs.

The prediction of one row is also timed without Python, and compared with the seconds of its multiply-adds at the
measured peak and of reading the weights. `python -m bench.ratios --only prediction` prints the same rounds as one
table.
"""

from pytest_benchmark.fixture import BenchmarkFixture

from ..cases.prediction import PREDICTION
from ..measure.case import Case
from ..measure.recording import record_case, recorded
from .parameters import parameters

pytestmark = recorded


@parameters(PREDICTION)
def test_predict(benchmark: BenchmarkFixture, case: Case, n_threads: int, contender: str) -> None:
    record_case(benchmark, "prediction", case, n_threads, contender)
