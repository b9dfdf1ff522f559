"""Peak memory of every method of training, recorded with its seconds."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from ..measure.libraries import INSTALLED
from ..measure.recording import record, recorded
from ..memory import METHODS, NEEDS, peak_of

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
