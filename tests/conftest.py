"""The two tiers of tests, and the thread counts every kernel is tested with.

`pytest` leaves out what is marked `thorough`. `pytest -m thorough` runs that alone, and every property test again, with
many more examples. BPLS_HYPOTHESIS_PROFILE picks one of the profiles below instead. With CI set, the examples are the
same in every run.
"""

import os

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from tests.support.reference import THREADS

# Simulator and compiler cannot share a process.
collect_ignore = [] if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1" else ["cuda/simulator"]

EXAMPLES = {"few": 3, "plain": 15, "thorough": 120, "exhaustive": 1000}
for name, examples in EXAMPLES.items():
    settings.register_profile(
        name,
        deadline=None,
        max_examples=examples,
        derandomize=bool(os.environ.get("CI")),
        suppress_health_check=[HealthCheck.too_slow],
    )


def only_thorough(config):
    return config.getoption("markexpr") == "thorough"


def pytest_configure(config):
    profile = "thorough" if only_thorough(config) else "plain"
    settings.load_profile(os.environ.get("BPLS_HYPOTHESIS_PROFILE", profile))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Count property tests as thorough where nothing else is asked for: there they have more examples."""
    if only_thorough(config):
        for item in items:
            if is_hypothesis_test(getattr(item, "obj", None)):
                item.add_marker("thorough")


FEWEST, *SOME, MOST = THREADS


# Module scope, because hypothesis does not reset function-scoped fixtures between examples.
@pytest.fixture(
    scope="module",
    params=[FEWEST, *(pytest.param(n, marks=pytest.mark.thorough) for n in SOME), MOST],
    ids=lambda n: f"{n} threads",
)
def n_threads(request):
    return request.param
