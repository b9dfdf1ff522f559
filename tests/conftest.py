"""Hypothesis profiles and the thread counts every kernel is tested with.

BPLS_HYPOTHESIS_PROFILE=thorough looks longer, =quick shorter. With CI set the examples are the same in every run.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.support.reference import THREADS

# Simulator and compiler cannot share a process.
collect_ignore = [] if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1" else ["cuda/simulator"]

settings.register_profile(
    "default",
    deadline=None,
    max_examples=40,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("default"), max_examples=10)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=1000)
settings.load_profile(os.environ.get("BPLS_HYPOTHESIS_PROFILE", "default"))


# Module scope, because hypothesis does not reset function-scoped fixtures between examples.
@pytest.fixture(scope="module", params=THREADS, ids=lambda n: f"{n} threads")
def n_threads(request):
    return request.param
