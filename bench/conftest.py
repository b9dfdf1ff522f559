"""Fixtures of the benchmarks, and what their file of results says about the machine and the skipped rows."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness import missing

from .cases.images import why_missing
from .measure.environment import environment


@pytest.fixture
def fashion() -> None:
    """Skip without Fashion-MNIST."""
    skip_without("fashion-mnist")


@pytest.fixture
def mnist() -> None:
    """Skip without MNIST."""
    skip_without("mnist")


def skip_without(name: str) -> None:
    """Skip if a data set is missing. In CI it must be there, except on GitHub's machines, which have none."""
    reason = why_missing(name)
    if reason:
        missing(reason)


_skipped: Counter[str] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count skipped rows by file and reason, except tests that `--benchmark-only` leaves out."""
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if "--benchmark-only" not in reason:
            _skipped[f"{Path(report.location[0]).stem}: {reason}"] += 1


def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    """Add the environment that the report shows. pytest-benchmark calls this before the first benchmark."""
    machine_info["environment"] = environment()


def pytest_benchmark_update_json(output_json: dict[str, Any]) -> None:
    """Add the rows that the report lists as not measured."""
    output_json["skipped"] = dict(_skipped)
