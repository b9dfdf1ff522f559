"""Kernels at shapes drawn at random, two threads: the seed is BPLS_BENCH_SEED, or 0, so that runs can be compared.

`python -m bench.random_shapes` draws others and prints their summary.
"""

import os
import re

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from .. import SMALL
from ..cases.shapes import DTYPES, deal, drawn_cases
from ..contenders import OURS
from ..measure.case import Case
from ..measure.libraries import INSTALLED
from ..measure.recording import record_case, recorded
from ..random_shapes import RIVALS

pytestmark = recorded

SEED = int(os.environ.get("BPLS_BENCH_SEED", "0"))
DRAWS = 12 if SMALL else 102
KINDS = [(kernel, dtype) for kernel, dtypes in DTYPES.items() for dtype in dtypes]
STREAMS = [drawn_cases(kernel, dtype, SEED) for kernel, dtype in KINDS]
CASES = [case for _, case in sorted(deal(STREAMS, DRAWS), key=lambda drawn: drawn[0])]


@pytest.mark.parametrize("contender", [OURS, *(name for name in RIVALS if INSTALLED[name])])
@pytest.mark.parametrize("cold", [False, True], ids=["hot", "cold"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: re.sub(r"\W+", "-", case.name))
def test_random_shape(benchmark: BenchmarkFixture, case: Case, cold: bool, contender: str) -> None:
    record_case(benchmark, "random shapes", case, 2, contender, cold=cold, seed=SEED)
