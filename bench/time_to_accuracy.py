"""Seconds to the same test accuracy: refined sweeps and tuned Adam, on MNIST and Fashion-MNIST, in one run.

    python -m bench.time_to_accuracy [--setting REGEX] [--epochs N] [--seeds N] [--passes P ...] [--threads N]
        [--grid small|full] [--csv FILE] [--json FILE]

Ours is `fit_refined` with its default settings, on bytes. Every number of passes is a complete fit of its own, timed
from the arrays in memory to the trained network. Adam is that of baselines/mini_batch.py; every batch size and rate of
a grid runs once.

Test rows are not used while the clock runs. Adam's batch size, rate and epoch are chosen by test accuracy, which
favours it; our accuracies are means over seeds. Our fits run before, between and after the runs of Adam.
"""

import argparse
import csv
import functools
import json
import re
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import bpls_fast as bf
from bpls_fast.datasets import DataSet

from . import SMALL
from .baselines.mini_batch import GRIDS, Config, Run, epoch_seconds, gradient_run
from .cases.networks import SETTINGS, Setting, as_tensors, load
from .measure.environment import header
from .measure.libraries import PAUSE_SECONDS, limited, torch
from .report.text import markdown, shown

PASSES = (1.0, 2.0) if SMALL else (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
EPOCHS = 20
SEEDS = 5
AFTER = (1, 2, 5)
"""Further epochs after which Adam is compared."""
LEGEND = (
    "Seconds of Adam: epochs times the fastest epoch with that batch size, at any rate / as measured. Our seconds:\n"
    "the best / the median of the fits. Ratio = Adam's time / our time, of the first figures / of the second.\n"
    "Accuracies are those on the test rows, ours with the standard deviation over the seeds."
)


class Fit(NamedTuple):
    """One fit of ours."""

    passes: float
    seed: int
    accuracy: float
    seconds: float


class AdamPoint(NamedTuple):
    """A run of Adam after some epochs."""

    batch: int
    rate: float
    epoch: int
    accuracy: float
    best_seconds: float
    seconds: float


class OurPoint(NamedTuple):
    """Our fits with some number of passes."""

    passes: float
    accuracy: float
    deviation: float
    best_seconds: float
    seconds: float


class Comparison(NamedTuple):
    """A point of one side and the first point of the other that is as accurate, or else its most accurate one."""

    question: str
    adam: AdamPoint
    ours: OurPoint
    reached: bool

    @property
    def ratios(self) -> tuple[float, float] | tuple[None, None]:
        """Return Adam's time divided by ours, for the best times and for those as measured."""
        if not self.reached:
            return None, None
        adam, ours = self.adam, self.ours
        return adam.best_seconds / ours.best_seconds, adam.seconds / ours.seconds


@dataclass(frozen=True)
class Result:
    """All measurements of a setting."""

    setting: Setting
    fits: list[Fit] = field(default_factory=list)
    again: list[Fit] = field(default_factory=list)
    """The fits of the first seed repeated at the end."""
    runs: list[Run] = field(default_factory=list)

    def seconds_of(self, passes: float) -> list[float]:
        """Return the seconds of all our fits with this number of passes."""
        return [fit.seconds for fit in (*self.fits, *self.again) if fit.passes == passes]

    @functools.cached_property
    def ours(self) -> list[OurPoint]:
        points = []
        for passes in dict.fromkeys(fit.passes for fit in self.fits):
            accuracies = [fit.accuracy for fit in self.fits if fit.passes == passes]
            times = self.seconds_of(passes)
            spread = statistics.stdev(accuracies) if len(accuracies) > 1 else 0.0
            points.append(
                OurPoint(
                    *(passes, statistics.fmean(accuracies), spread),
                    *(min(times), statistics.median(times)),
                )
            )
        return points

    @functools.cached_property
    def adam(self) -> list[AdamPoint]:
        fastest = {batch: min(times) for batch, times in epoch_seconds(self.runs).items()}
        return [
            AdamPoint(
                *(run.config.batch, run.config.rate, epoch, accuracy),
                *(epoch * fastest[run.config.batch], sum(run.seconds[:epoch])),
            )
            for run in self.runs
            for epoch, accuracy in enumerate(run.accuracies, 1)
        ]

    def adam_then_ours(self) -> Iterator[Comparison]:
        """Compare Adam at its best, over all epochs and after a few, with our first fit that is as accurate."""
        epochs = max(point.epoch for point in self.adam)
        yield self._first_of_ours(f"best in {epochs} epoch" + "s" * (epochs > 1), self.adam)
        for after in AFTER:
            points = [point for point in self.adam if point.epoch == after]
            if points:
                yield self._first_of_ours(f"best after {after}", points)

    def ours_then_adam(self) -> Iterator[Comparison]:
        """Compare each of our points with the run of Adam that is the first to be as accurate."""
        for ours in self.ours:
            reaching = [point for point in self.adam if point.accuracy >= ours.accuracy]
            adam = min(
                reaching, key=lambda point: point.best_seconds, default=most_accurate(self.adam)
            )
            yield Comparison(passes_text(ours.passes), adam, ours, bool(reaching))

    def _first_of_ours(self, question: str, points: Sequence[AdamPoint]) -> Comparison:
        adam = most_accurate(points)
        reaching = [point for point in self.ours if point.accuracy >= adam.accuracy]
        ours = reaching[0] if reaching else most_accurate(self.ours)
        return Comparison(question, adam, ours, bool(reaching))

    def edges(self) -> list[str]:
        """Return the edges of the grid on which Adam's best lies: it may do better beyond them."""
        best = most_accurate(self.adam)
        found = ["its last epoch"] if best.epoch == max(point.epoch for point in self.adam) else []
        for name in ("batch", "rate"):
            tried = [getattr(point, name) for point in self.adam]
            for end, which in ((min(tried), "smallest"), (max(tried), "largest")):
                if getattr(best, name) == end:
                    found.append(f"the {which} {name}")
        return found

    def turns(self) -> list[float]:
        """Return the total seconds of our fits, turn by turn, which show whether the machine slowed down."""
        seeds = dict.fromkeys(fit.seed for fit in self.fits)
        of_seeds = [sum(fit.seconds for fit in self.fits if fit.seed == seed) for seed in seeds]
        return [*of_seeds, sum(fit.seconds for fit in self.again)]


def passes_text(passes: float) -> str:
    return f"{passes:g} pass" + "es" * (passes != 1)


def most_accurate(points: Sequence[Any]) -> Any:
    """Return the most accurate point; among equals, the fastest."""
    return max(points, key=lambda point: (point.accuracy, -point.best_seconds))


def our_fit(setting: Setting, data: DataSet, passes: float, seed: int) -> Fit:
    """Time a fit from the bytes to the trained network, then measure its test accuracy."""
    x, labels, x_test, labels_test = data
    time.sleep(PAUSE_SECONDS)
    began = time.perf_counter()
    net = bf.Network(setting.sizes, activation=setting.activation, seed=seed)
    bf.fit_refined(net, x, labels, max_passes=passes, seed=seed)
    took = time.perf_counter() - began
    return Fit(passes, seed, float((net.predict(x_test) == labels_test).mean()), took)


def measure(
    setting: Setting,
    all_passes: Sequence[float],
    grid: Sequence[Config],
    epochs: int,
    seeds: int,
    threads: int,
) -> Result:
    """Interleave our fits of each seed with parts of Adam's grid, and repeat the first seed at the end."""
    result = Result(setting)
    data = load(setting.data)
    tensors = as_tensors(data)

    def fits(seed: int) -> list[Fit]:
        return [our_fit(setting, data, passes, seed) for passes in all_passes]

    with limited(threads):
        our_fit(setting, data, all_passes[0], 0)  # to warm up
        for seed in range(seeds):
            tell(f"{setting.name}: ours, seed {seed}")
            result.fits.extend(fits(seed))
            for config in grid[seed::seeds]:
                tell(f"{setting.name}: Adam, batch {config.batch}, rate {config.rate:g}")
                result.runs.append(gradient_run(setting, tensors, config, epochs))
        tell(f"{setting.name}: ours, seed 0 again")
        result.again.extend(fits(0))
    for first, second in zip(result.fits[: len(all_passes)], result.again, strict=True):
        if first.accuracy != second.accuracy:
            raise AssertionError(
                f"{setting.name}, {passes_text(first.passes)}: the same seed gave the accuracies "
                f"{first.accuracy} and {second.accuracy}"
            )
    return result


def tell(progress: str) -> None:
    print(progress, file=sys.stderr, flush=True)


def adam_cells(point: AdamPoint) -> list[str]:
    return [
        f"batch {point.batch}, rate {point.rate:g}, epoch {point.epoch}",
        f"{point.accuracy:.2%}",
        f"{shown(point.best_seconds)} / {shown(point.seconds)}",
    ]


def our_cells(point: OurPoint) -> list[str]:
    return [
        passes_text(point.passes),
        f"{point.accuracy:.2%} ({100 * point.deviation:.2f})",
        f"{shown(point.best_seconds)} / {shown(point.seconds)}",
    ]


def report(result: Result) -> str:
    """Return two tables of a setting: our time to Adam's accuracies, and Adam's time to ours."""
    lines = [
        [row.question, *adam_cells(row.adam), *reached_cells(row, our_cells(row.ours))]
        for row in result.adam_then_ours()
    ]
    columns = ["accuracy", "seconds"]
    to_adam = markdown(["Adam", "", *columns, "we reach it with", *columns, "ratio"], lines)
    lines = [
        [*our_cells(row.ours), *reached_cells(row, adam_cells(row.adam))]
        for row in result.ours_then_adam()
    ]
    to_ours = markdown(["ours", *columns, "Adam first reaches it with", *columns, "ratio"], lines)
    turns = ", ".join(map(shown, result.turns()))
    epochs = ", ".join(
        f"batch {batch} {shown(min(times))} / {shown(statistics.median(times))} / {shown(max(times))}"
        for batch, times in epoch_seconds(result.runs).items()
    )
    edges = ", ".join(result.edges())
    beyond = f"Adam's best is at {edges}: a larger grid might find better.\n" if edges else ""
    return (
        f"## {result.setting.name}\n\n{to_adam}\n\n{to_ours}\n\n"
        f"{beyond}All our fits of a turn, from the first turn to the last: {turns}.\n"
        f"An epoch of Adam, fastest / median / slowest: {epochs}."
    )


def reached_cells(row: Comparison, cells: list[str]) -> list[str]:
    """Return the cells of the side that follows; if it never reached the accuracy, they say so."""
    best, measured = row.ratios
    if best is None:
        return [f"never; at most: {cells[0]}", *cells[1:], "never"]
    return [*cells, f"**{best:.2f}x** / {measured:.2f}x"]


def write_csv(path: Path, results: Sequence[Result]) -> None:
    """Write one line per comparison. The ratios are empty if the accuracy was not reached."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(
            [
                *("setting", "first", "question"),
                *(f"adam_{name}" for name in AdamPoint._fields),
                *(f"our_{name}" for name in OurPoint._fields),
                *("reached", "ratio_of_bests", "ratio"),
            ]
        )
        for result in results:
            for first, rows in (
                ("adam", result.adam_then_ours()),
                ("ours", result.ours_then_adam()),
            ):
                for row in rows:
                    start = (result.setting.name, first, row.question)
                    writer.writerow([*start, *row.adam, *row.ours, row.reached, *row.ratios])


def write_json(path: Path, results: Sequence[Result], about: str) -> None:
    """Write every measured time and accuracy."""
    measured = [
        {
            "setting": result.setting.name,
            "fits": [fit._asdict() for fit in result.fits],
            "again": [fit._asdict() for fit in result.again],
            "runs": [
                {**run.config._asdict(), "accuracies": run.accuracies, "seconds": run.seconds}
                for run in result.runs
            ],
        }
        for result in results
    ]
    text = json.dumps({"header": about.splitlines(), "results": measured}, indent=1)
    path.write_text(text, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the settings and print their tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--setting", metavar="REGEX", default="", help="settings whose name matches"
    )
    parser.add_argument("--epochs", type=int, default=EPOCHS, metavar="N", help="epochs of Adam")
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help="seeds of ours")
    parser.add_argument(
        "--passes", type=float, nargs="+", default=PASSES, metavar="P", help="passes of ours"
    )
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="threads of both")
    parser.add_argument(
        "--grid", choices=GRIDS, default="full", help="batch sizes and rates of Adam"
    )
    parser.add_argument(
        "--csv", type=Path, metavar="FILE", help="also write the tables to this file"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write all measurements to this file"
    )
    options = parser.parse_args(arguments)
    if torch is None:
        parser.error("PyTorch, which has Adam, is not installed")
    if min(options.epochs, options.seeds, options.threads) < 1 or min(options.passes) <= 0:
        parser.error("epochs, seeds and threads must be at least 1, passes more than 0")
    settings = [setting for setting in SETTINGS if re.search(options.setting, setting.name)]
    if not settings:
        names = "\n".join(setting.name for setting in SETTINGS)
        parser.error(f"no setting matches {options.setting!r}; there are\n{names}")

    grid = GRIDS[options.grid]
    about = header(
        threads=str(options.threads),
        Adam=f"best of {len(grid)} runs ({options.grid} grid), {options.epochs} epochs each",
        ours=f"mean of {options.seeds} seeds",
    )
    print(f"{about}\n\n{LEGEND}", flush=True)
    results: list[Result] = []
    for setting in settings:
        result = measure(
            *(setting, sorted(set(options.passes)), grid),
            *(options.epochs, options.seeds, options.threads),
        )
        results.append(result)
        print(f"\n{report(result)}", flush=True)
        # After every setting, so that an interrupted run keeps its results.
        if options.csv:
            write_csv(options.csv, results)
        if options.json:
            write_json(options.json, results, about)


if __name__ == "__main__":
    main()
