"""The cases as parameters of a pytest-benchmark test: every case, number of threads and contender."""

import re
from collections.abc import Sequence

import pytest
from interleaved import BARE
from kernel_cases import INSTALLED, Case

THREADS = (1, 2)


def parameters(cases: Sequence[Case], threads: Sequence[int] = THREADS) -> pytest.MarkDecorator:
    """Give the decorator; who is not installed is skipped."""
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
            for contender in [*case.contenders, *([BARE] if case.bare else [])]
        ],
    )
