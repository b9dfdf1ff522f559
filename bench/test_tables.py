"""Small tables as pytest-benchmark groups: the estimators beside scikit-learn's MLPs, both at their defaults."""

import functools
import statistics

import pytest
from interleaved import record, recorded
from kernel_cases import OURS, SMALL, limited
from pytest_benchmark.fixture import BenchmarkFixture

small_tables = pytest.importorskip("small_tables", reason="scikit-learn is not installed")

MLP = "MLPClassifier or MLPRegressor"
ROUNDS = 1 if SMALL else 20
NAMES = ("wine", "friedman1") if SMALL else tuple(small_tables.TABLES)
SLACK = 0.1
"""What the score may stay behind the MLP's: beyond it something is broken."""

pytestmark = [recorded, pytest.mark.filterwarnings("ignore:Stochastic Optimizer")]


@functools.cache
def rounds_of(name: str) -> dict[str, list[tuple[float, float]]]:
    """Give score and seconds of five fits, round by round, of both."""
    ours, theirs = small_tables.estimators(name)
    found: dict[str, list[tuple[float, float]]] = {OURS: [], MLP: []}
    with limited(1):
        for seed in range(ROUNDS):
            found[OURS].append(small_tables.five_folds(ours, name, seed))
            found[MLP].append(small_tables.five_folds(theirs, name, seed))
    return found


@pytest.mark.parametrize("contender", [OURS, MLP])
@pytest.mark.parametrize("name", NAMES)
def test_small_table(benchmark: BenchmarkFixture, name: str, contender: str) -> None:
    scores = {
        who: statistics.fmean(score for score, _ in rounds_of(name)[who]) for who in (OURS, MLP)
    }
    assert scores[OURS] > scores[MLP] - SLACK
    record(
        benchmark,
        f"{name}, five fits",
        contender,
        [seconds for _, seconds in rounds_of(name)[contender]],
        suite="small tables",
        score=scores[contender],
    )
