"""What several benchmarks need as tests, and what their file of results says of the machine."""

import importlib
import importlib.util
import os
from types import ModuleType
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


@pytest.fixture
def cuda() -> ModuleType:
    """Give the kernels of the GPU; skip where there are none, or no device. A simulated one has no speed."""
    if importlib.util.find_spec("bpls_fast.cuda") is None:
        pytest.skip("this bpls_fast has no cuda backend")
    if importlib.util.find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda is not installed")
    if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
        pytest.skip("the simulator says nothing about speed")
    if not importlib.import_module("numba.cuda").is_available():
        pytest.skip("no CUDA device was found")
    return importlib.import_module("bpls_fast.cuda")


def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    """Note what the report names: this runs before the first benchmark."""
    machine_info["environment"] = environment()
