"""Fits and training on a machine that others use too; the suite starts the load and ends it.

`python -m bench.loaded` prints the same scenarios with the threads after fork and a first call after a pause.
"""

import functools

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from ..contenders import OURS
from ..loaded import FIT, ROUNDS, SCENARIOS, TRAIN, Line, timed_lines
from ..measure.recording import record, recorded

pytestmark = recorded


@functools.cache
def measured() -> dict[str, Line]:
    """Run all scenarios once."""
    return {line.what: line for line in timed_lines(ROUNDS)}


@pytest.mark.parametrize("what", [*(f"{FIT}, {name}" for name in SCENARIOS), TRAIN])
def test_loaded(benchmark: BenchmarkFixture, what: str) -> None:
    line = measured()[what]
    note = f"{line.figure}; bound: {line.bound}"
    record(benchmark, line.what, OURS, line.samples, suite="loaded", note=note)
