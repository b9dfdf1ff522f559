"""Settings of tests and benchmarks. They run on the installed package, and share nothing but this file."""

import importlib

import pytest

# While the root of the clone comes first on sys.path. `tests` imports `bench`, which moves the root to the end.
import tests  # noqa: F401


@pytest.fixture(scope="session")
def simulator_scheduler() -> None:
    """Let numba-cuda's simulator run its threads by the scheduler of the tests."""
    importlib.import_module("tests.cuda.scheduler").install()
