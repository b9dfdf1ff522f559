"""Fixtures of tests and benchmarks. Both run on the installed package."""

import importlib

import pytest

# Imported while the root of the clone comes first on sys.path; harness.py then moves the root to the end.
import tests  # noqa: F401


@pytest.fixture(scope="session")
def simulator_scheduler() -> None:
    """Let numba-cuda's simulator run its threads by the scheduler of the tests."""
    importlib.import_module("tests.cuda.scheduler").install()
