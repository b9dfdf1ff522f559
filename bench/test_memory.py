"""Peak memory of every way of training, recorded beside the seconds of its process."""

import pytest
from interleaved import record, recorded
from kernel_cases import INSTALLED
from memory import METHODS, NEEDS, peak_of
from pytest_benchmark.fixture import BenchmarkFixture

pytestmark = [pytest.mark.usefixtures("fashion"), recorded]


@pytest.mark.parametrize("contender", METHODS)
def test_peak_memory(benchmark: BenchmarkFixture, contender: str) -> None:
    if not INSTALLED.get(NEEDS.get(contender, ""), True):
        pytest.skip(f"{NEEDS[contender]} is not installed")
    peak = peak_of(contender)
    assert peak.after > peak.before > 0
    record(
        benchmark,
        "peak memory, fashion 100-70",
        contender,
        [peak.seconds],
        suite="memory",
        peak_bytes=peak.after,
        more_bytes=peak.after - peak.before,
    )
