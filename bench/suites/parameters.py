"""Cases as parameters of a pytest-benchmark test: every case, number of threads and contender."""

import re
from collections.abc import Sequence

import pytest

from ..measure.case import Case
from ..measure.libraries import INSTALLED

THREADS = (1, 2)


def parameters(cases: Sequence[Case], threads: Sequence[int] = THREADS) -> pytest.MarkDecorator:
    """Return the decorator; contenders that are not installed are skipped."""
    return pytest.mark.parametrize(
        ("case", "n_threads", "contender"),
        [
            pytest.param(
                case,
                n_threads,
                contender,
                id=re.sub(r"\W+", "-", f"{case.name} {n_threads} threads {contender}"),
                marks=pytest.mark.skipif(
                    not INSTALLED.get(contender, True), reason=f"{contender} is not installed"
                ),
            )
            for case in cases
            for n_threads in threads
            for contender in case.rows_of_results
        ],
    )
