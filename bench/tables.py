"""Tables of other people against scikit-learn: accuracy or R², log loss and time on the test rows.

    python -m bench.tables --output docs

runs the tables in the folder `tables` of BPLS_DATA, each contender at its defaults, and writes
tables.md. Test rows are those of the official split, else 30 % of all; at most 12,000 rows are trained on;
columns of floats are standardized. Times are CPU seconds of `fit`: set the threads to one.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import bpls_fast as bf

TRAINING_ROWS = 12_000
LEAST_R2 = -0.2
"""A smaller R² counts as this one: a single table should not decide."""
MOST_COLUMNS = 60
"""Gradient boosting runs on tables of at most so many columns."""
BEHIND = 0.01
"""A score that is lower by more is behind."""

Contender = Callable[[], Any]


class Table(NamedTuple):
    """Rows to train on and to test on, with labels or numbers."""

    name: str
    is_regression: bool
    x_train: NDArray[Any]
    y_train: NDArray[Any]
    x_test: NDArray[Any]
    y_test: NDArray[Any]


class Result(NamedTuple):
    """What a contender reached on a table: accuracy or R², log loss (0 for numbers), seconds."""

    score: float
    log_loss: float
    seconds: float


def load(path: Path) -> Table:
    """Load a table: arrays X and y, `task`, and Xtest and ytest where there is an official split."""
    with np.load(path) as arrays:
        X, y = arrays["X"].reshape(len(arrays["X"]), -1), arrays["y"]
        is_regression = str(arrays["task"]) == "regression"
        order = np.random.default_rng(5).permutation(len(X))
        if "Xtest" in arrays.files:
            x_test, y_test = arrays["Xtest"], arrays["ytest"]
            x_test = x_test.reshape(len(x_test), -1)
        else:
            held, order = np.split(order, [len(X) * 3 // 10])
            x_test, y_test = X[held], y[held]
        X, y = X[order[:TRAINING_ROWS]], y[order[:TRAINING_ROWS]]
    if X.dtype != np.uint8:
        mean, deviation = X.mean(axis=0), X.std(axis=0)
        deviation[deviation == 0] = 1
        X, x_test = (((rows - mean) / deviation).astype(np.float32) for rows in (X, x_test))
    return Table(path.stem, is_regression, X, y, x_test, y_test)


def classifiers() -> dict[str, Contender]:
    """Return the classifiers by name, the one that others are compared with first."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    return {
        "MLP": lambda: MLPClassifier(random_state=0),
        "gradient boosting": lambda: HistGradientBoostingClassifier(random_state=0),
        "linear": lambda: LogisticRegression(random_state=0),
        "bpls_fast": lambda: bf.BPLSClassifier(random_state=0),
        "one network": lambda: bf.BPLSClassifier(n_networks=1, random_state=0),
    }


def regressors() -> dict[str, Contender]:
    """Return the regressors by name, the one that others are compared with first."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.neural_network import MLPRegressor

    return {
        "MLP": lambda: MLPRegressor(random_state=0),
        "gradient boosting": lambda: HistGradientBoostingRegressor(random_state=0),
        "linear": RidgeCV,
        "bpls_fast": lambda: bf.BPLSRegressor(random_state=0),
        "one network": lambda: bf.BPLSRegressor(n_networks=1, random_state=0),
    }


def run(table: Table, make: Contender) -> Result:
    """Fit a contender and score it on the test rows; those of scikit-learn get bytes as numbers from 0 to 1."""
    model = make()
    x_train, x_test = table.x_train, table.x_test
    if x_train.dtype == np.uint8 and not isinstance(model, (bf.BPLSClassifier, bf.BPLSRegressor)):
        x_train, x_test = (rows / np.float32(255) for rows in (x_train, x_test))
    began = time.process_time()
    model.fit(x_train, table.y_train)
    seconds = time.process_time() - began
    if table.is_regression:
        return Result(max(LEAST_R2, model.score(x_test, table.y_test)), 0.0, seconds)
    p = np.asarray(model.predict_proba(x_test), np.float64)
    right = np.take_along_axis(p, np.searchsorted(model.classes_, table.y_test)[:, None], axis=1)
    accuracy = float(np.mean(model.classes_[p.argmax(axis=1)] == table.y_test))
    return Result(accuracy, -float(np.log(np.maximum(right, 1e-7)).mean()), seconds)


def names_of(results: dict[str, dict[str, Result]]) -> list[str]:
    """Return the contenders in their order, also where the first table is not for all of them."""
    longest = max(results.values(), key=lambda of_table: len(of_table))
    return list(longest)


def summary(results: dict[str, dict[str, Result]]) -> str:
    """Return Markdown with a line per contender: means over its tables, and how it compares with the first."""
    names = names_of(results)
    lines = [
        "| | tables | score | log loss | ahead | behind | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in names:
        pairs = [(found[name], found[names[0]]) for found in results.values() if name in found]
        score, log_loss, _ = np.mean([mine for mine, _ in pairs], axis=0)
        ahead = np.mean([mine.score > other.score for mine, other in pairs])
        behind = np.mean([mine.score < other.score - BEHIND for mine, other in pairs])
        seconds = sum(mine.seconds for mine, _ in pairs)
        lines.append(
            f"| {name} | {len(pairs)} | {score:.4f} | {log_loss:.3f} | {ahead:.0%} | {behind:.0%} | {seconds:.1f} |"
        )
    return "\n".join(lines)


def by_table(results: dict[str, dict[str, Result]]) -> str:
    """Return Markdown with a line per table: the score and the seconds of every contender, the best score in bold."""
    names = names_of(results)
    lines = [f"| | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for table, found in results.items():
        best = max(result.score for result in found.values())
        cells = []
        for name in names:
            if name not in found:
                cells.append("")
                continue
            score = f"{found[name].score:.3f}"
            bold = "**" if found[name].score == best else ""
            cells.append(f"{bold}{score}{bold} ({found[name].seconds:.2f} s)")
        lines.append(f"| {table} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(results: dict[bool, dict[str, dict[str, Result]]], path: Path) -> None:
    """Draw how far ahead of the MLP two contenders are on every table."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    kinds = {kind: found for kind, found in results.items() if found}
    fig, axes = plt.subplots(1, len(kinds), figsize=(6 * len(kinds), 6), squeeze=False)
    marks = {"bpls_fast": ("o", "#0072b2"), "gradient boosting": ("s", "#e69f00")}
    for axis, (is_regression, found) in zip(axes[0], kinds.items(), strict=True):
        gains = {
            table: {
                name: scores[name].score - scores["MLP"].score for name in marks if name in scores
            }
            for table, scores in found.items()
        }
        order = sorted(gains, key=lambda table: gains[table]["bpls_fast"])
        for name, (mark, color) in marks.items():
            places = [place for place, table in enumerate(order) if name in gains[table]]
            values = [gains[table][name] for table in order if name in gains[table]]
            axis.plot(values, places, mark, color=color, label=name, alpha=0.8)
        axis.axvline(0, color="grey", linewidth=1)
        axis.set_yticks(range(len(order)), order, fontsize=8)
        axis.set_xscale("symlog", linthresh=0.01)
        axis.set_xlabel(
            "R² less that of the MLP" if is_regression else "accuracy less that of the MLP"
        )
        axis.legend(loc="upper left")
    fig.tight_layout()
    fig.savefig(path, dpi=110)
    plt.close(fig)


PAGE = """# Tables of other people

`python -m bench.tables --output docs` writes this page. These are at their defaults, with a seed: scikit-learn's MLP,
histogram gradient boosting (up to {columns} columns) and a linear model (logistic regression, cross-validated ridge
regression), and our estimators. The last column is ours with `n_networks=1`. Test rows are those of the official
split, else 30 % of all; at most {most} rows are trained on; columns of floats are standardized for all. Scores are
accuracy or R², which counts as {least} where it is lower. Ahead, and behind by more than {behind}, are shares of the
tables, compared with the MLP. Times are CPU seconds of all fits, {threads}.

![gain over the MLP](tables.png)
"""


def write(results: dict[bool, dict[str, dict[str, Result]]], folder: Path) -> None:
    """Write the page and its picture."""
    page = PAGE.format(
        columns=MOST_COLUMNS,
        most=f"{TRAINING_ROWS:,}",
        least=LEAST_R2,
        behind=BEHIND,
        threads="one thread"
        if bf.config()["threads"] == 1
        else f"{bf.config()['threads']} threads",
    )
    for is_regression, found in results.items():
        if found:
            title = "Regression" if is_regression else "Classification"
            page += f"\n## {title}\n\n{summary(found)}\n\n{by_table(found)}\n"
    draw(results, folder / "tables.png")
    (folder / "tables.md").write_text(page)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all tables, or those that are named; print a line for each, and Markdown for each kind."""
    parser = argparse.ArgumentParser(prog="python -m bench.tables", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="TABLE", help="names of tables, without .npz")
    parser.add_argument(
        "--data", type=Path, help="the folder of the tables, by default BPLS_DATA/tables"
    )
    parser.add_argument("--output", type=Path, help="a folder to write tables.md and tables.png to")
    chosen = parser.parse_args(arguments)
    folder = chosen.data or Path(os.environ["BPLS_DATA"]) / "tables"
    contenders = {False: classifiers(), True: regressors()}
    results: dict[bool, dict[str, dict[str, Result]]] = {False: {}, True: {}}
    for path in sorted(folder.glob("*.npz")):
        if chosen.only and path.stem not in chosen.only:
            continue
        table = load(path)
        found: dict[str, Result] = {}
        for name, make in contenders[table.is_regression].items():
            if name != "gradient boosting" or table.x_train.shape[1] <= MOST_COLUMNS:
                found[name] = run(table, make)
        results[table.is_regression][table.name] = found
        shown = ", ".join(f"{name} {result.score:.4f}" for name, result in found.items())
        print(f"{table.name}: {shown}", flush=True)
    for of_kind in results.values():
        if of_kind:
            print(f"\n{summary(of_kind)}\n\n{by_table(of_kind)}")
    if chosen.output:
        write(results, chosen.output)


if __name__ == "__main__":
    main()
