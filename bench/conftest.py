"""What several benchmarks need as tests, and what their file of results says of the machine."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import images
import pytest
from header import environment


@pytest.fixture
def fashion() -> None:
    """Skip without Fashion-MNIST."""
    skip_without("FashionMNIST")


@pytest.fixture
def mnist() -> None:
    """Skip without MNIST."""
    skip_without("MNIST")


def skip_without(folder: str) -> None:
    """Skip without images; where CI runs beside them they must be there. GitHub's machines have none."""
    if not images.are_there(folder):
        reason = f"{images.ROOT} has no {folder}; BPLS_DATA can name another folder"
        if os.environ.get("CI") == "true" and os.environ.get("GITHUB_ACTIONS") != "true":
            pytest.fail(f"must not be skipped here: {reason}")
        pytest.skip(reason)


_skipped: Counter[str] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count what is skipped, by file and reason; not what `--benchmark-only` leaves out, which is no benchmark."""
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        if "--benchmark-only" not in reason:
            _skipped[f"{Path(report.location[0]).stem}: {reason}"] += 1


def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    """Note what the report names: this runs before the first benchmark."""
    machine_info["environment"] = environment()


def pytest_benchmark_update_json(output_json: dict[str, Any]) -> None:
    """Note what the report says was not measured."""
    output_json["skipped"] = dict(_skipped)
