"""Small tables: the estimators and scikit-learn's MLPs, both at their defaults."""

import functools
import statistics

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from .. import SMALL
from ..contenders import OURS, TABLE_MLP
from ..measure.libraries import limited
from ..measure.recording import record, recorded

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from .. import small_tables

ROUNDS = 1 if SMALL else 20
NAMES = ("wine", "friedman1") if SMALL else tuple(small_tables.TABLES)
SLACK = 0.1
"""How far the score may stay behind the MLP's; a larger gap means that something is broken."""

pytestmark = [recorded, pytest.mark.filterwarnings("ignore:Stochastic Optimizer")]


@functools.cache
def rounds_of(name: str) -> dict[str, list[tuple[float, float]]]:
    """Return score and seconds of five fits, round by round, by contender."""
    ours, theirs = small_tables.estimators(name)
    found: dict[str, list[tuple[float, float]]] = {OURS: [], TABLE_MLP: []}
    with limited(1):
        for seed in range(ROUNDS):
            found[OURS].append(small_tables.five_folds(ours, name, seed))
            found[TABLE_MLP].append(small_tables.five_folds(theirs, name, seed))
    return found


@pytest.mark.parametrize("contender", [OURS, TABLE_MLP])
@pytest.mark.parametrize("name", NAMES)
def test_small_table(benchmark: BenchmarkFixture, name: str, contender: str) -> None:
    scores = {
        who: statistics.fmean(score for score, _ in rounds_of(name)[who])
        for who in (OURS, TABLE_MLP)
    }
    assert scores[OURS] > scores[TABLE_MLP] - SLACK
    record(
        benchmark,
        f"{name}, five fits",
        contender,
        [seconds for _, seconds in rounds_of(name)[contender]],
        suite="small tables",
        score=scores[contender],
    )
