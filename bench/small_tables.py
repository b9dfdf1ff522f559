"""Small tables: score and seconds of a fit of our estimators and of scikit-learn's MLPs, both at their defaults.

    python -m bench.small_tables --rounds 20

Every round fits both, one after the other, on the same five folds of standardized columns. Each round has its own
folds and seed: with 178 rows the choice of folds changes the scores by more than the two estimators differ. Times are
those of `fit` alone; the ratio is that of the medians over the rounds.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_friedman1,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler

import bpls_fast as bf

Array = NDArray[Any]


class Table(NamedTuple):
    """A data set; `classes` tells whether its targets are classes."""

    load: Callable[[], tuple[Array, Array]]
    classes: bool


PAUSE_SECONDS = 0.2
"""Wait this long before each estimator: threads of BLAS spin after an MLP, on a core that the next fit would use."""

TABLES = {
    "breast_cancer": Table(lambda: load_breast_cancer(return_X_y=True), True),
    "wine": Table(lambda: load_wine(return_X_y=True), True),
    "digits": Table(lambda: load_digits(return_X_y=True), True),
    "diabetes": Table(lambda: load_diabetes(return_X_y=True), False),
    "friedman1": Table(lambda: make_friedman1(random_state=0), False),
}


def estimators(name: str) -> tuple[Any, Any]:
    """Return our estimator and scikit-learn's for a table."""
    if TABLES[name].classes:
        return bf.BPLSClassifier, MLPClassifier
    return bf.BPLSRegressor, MLPRegressor


def five_folds(estimator: Any, name: str, seed: int) -> tuple[float, float]:
    """Return the mean score and the seconds of all five fits; the seed also chooses the folds."""
    X, y = TABLES[name].load()
    kind = StratifiedKFold if TABLES[name].classes else KFold
    folds = kind(5, shuffle=True, random_state=seed)
    scores, seconds = [], 0.0
    time.sleep(PAUSE_SECONDS)
    for train, test in folds.split(X, y):
        scaler = StandardScaler().fit(X[train])
        rows = scaler.transform(X[train])
        model = estimator(random_state=seed)
        began = time.perf_counter()
        model.fit(rows, y[train])
        seconds += time.perf_counter() - began
        scores.append(model.score(scaler.transform(X[test]), y[test]))
    return float(np.mean(scores)), seconds


def compare(name: str, rounds: int) -> str:
    """Return the line of one table."""
    X, _ = TABLES[name].load()
    results = np.array(
        [
            [five_folds(estimator, name, seed) for estimator in estimators(name)]
            for seed in range(rounds)
        ]
    )
    (ours, theirs), (our_seconds, their_seconds) = (
        results[:, :, 0].mean(axis=0),
        np.median(results[:, :, 1], axis=0) / 5,
    )
    return (
        f"| {name} | {len(X)} x {X.shape[1]} | {ours:.4f} | {theirs:.4f} | {our_seconds * 1e3:.1f} ms | "
        f"{their_seconds * 1e3:.0f} ms | {their_seconds / our_seconds:.1f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", choices=TABLES, nargs="*", default=list(TABLES))
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # of the MLPs' default number of iterations
    print("| table | size | score | MLP | seconds of a fit | MLP | ratio |")
    print("|---|---|---|---|---|---|---|")
    for name in chosen.only:
        print(compare(name, chosen.rounds), flush=True)


if __name__ == "__main__":
    main()
