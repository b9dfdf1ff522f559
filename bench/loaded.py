"""Our calls on a machine that others use too: beside busy loops, several processes at once, after a pause, after fork.

    python -m bench.loaded [--rounds N]

The suite starts the busy loops and ends them, also on Ctrl-C. Every figure stands beside its bound. Rounds are
interleaved: each runs every scenario once, and the median over all of them counts.
"""

import argparse
import contextlib
import io
import json
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import bpls_fast as bf
from bpls_fast import cli

from . import SMALL
from .cases.layers import linear_case
from .contenders import OURS
from .measure.environment import header, load_average
from .measure.libraries import PAUSE_SECONDS
from .measure.load import at_once, busy_loops
from .measure.peaks import Peaks
from .measure.processes import output_of_module
from .measure.rounds import Row, measure
from .report.results import UNSURE
from .report.text import markdown, shown

ROWS, COLS, CLASSES = (300, 8, 3) if SMALL else (3000, 64, 10)
LINEAR = linear_case("float32", "relu", 200 if SMALL else 12_334, 18, cols=33, of_images=False)
WORK_SECONDS = 0.1 if SMALL else 1.5
"""A process fits again and again for so long, so that those started at once overlap."""
LEAST_ACCURACY = 0.9
TRAIN = "`bpls-fast train digits` with one core busy, its seconds of training"
TRAIN_BOUND = 0.05
N_THREADS = 2
IDLE_LOAD = 0.5
"""Above this load average the machine has other users, and the figures are no evidence."""
ROUNDS = 1 if SMALL else 5
PAUSED_ROUNDS = 2 if SMALL else 15


class Line(NamedTuple):
    """A figure, and whether it keeps its bound: None where the bound is an earlier run."""

    what: str
    figure: str
    bound: str
    kept: bool | None
    samples: Sequence[float] = ()
    """The seconds behind the figure, if these are seconds of ours alone."""

    @property
    def cells(self) -> list[str]:
        verdict = {None: "", True: "yes", False: "**no**"}[self.kept]
        return [self.what, self.figure, self.bound, verdict]


# ---- what runs in processes of its own: `python -m bench.loaded --child NAME`


def fit_seconds() -> list[float]:
    """Fit again and again once told to; return the seconds of every fit."""
    random = np.random.default_rng(0)
    y = np.arange(ROWS) % CLASSES
    centres = 2 * random.standard_normal((CLASSES, COLS), np.float32)
    X = random.standard_normal((ROWS, COLS), np.float32) + centres[y]
    make = partial(
        bf.BPLSClassifier, (60,), "softmax", loss="squared", n_networks=1, random_state=0
    )
    make().fit(X, y)
    print("ready", flush=True)
    input()
    taken: list[float] = []
    while sum(taken) < WORK_SECONDS:
        began = time.perf_counter()
        model = make().fit(X, y)
        taken.append(time.perf_counter() - began)
    assert model.score(X, y) > LEAST_ACCURACY
    return taken


def forked_threads() -> list[int]:
    """Return the threads of this process and of a child of fork() after a call of a kernel in each."""
    read, write = os.pipe()
    here = threads_in_use()
    if os.fork() == 0:
        os.write(write, str(threads_in_use()).encode())
        os._exit(0)
    os.wait()
    return [here, int(os.read(read, 20))]


def threads_in_use() -> int:
    """Call a kernel that is worth all threads; return how many it may use, or the fewer that there are then."""
    bf.gram(np.ones((4000, 200), np.float32))
    allowed, tasks = int(bf.config()["threads"]), Path("/proc/self/task")
    return min(allowed, len(list(tasks.iterdir()))) if tasks.exists() else allowed


def train_seconds() -> float:
    """Run `bpls-fast train digits`; return the seconds of training that it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        cli.main(["train", "digits"])
    found = re.search(r"trained in ([\d.]+) s", printed.getvalue())
    assert found, printed.getvalue()
    return float(found[1])


CHILDREN: dict[str, Callable[[], object]] = {
    "fit": fit_seconds,
    "fork": forked_threads,
    "train": train_seconds,
}


# ---- scenarios


def fits(processes: int) -> list[float]:
    """Return the seconds of all fits of some processes at once."""
    child = [sys.executable, "-m", "bench.loaded", "--child", "fit"]
    return [seconds for line in at_once(child, processes) for seconds in json.loads(line)]


def fits_beside(loops: int) -> list[float]:
    """Return the seconds of the fits of one process beside busy loops."""
    with busy_loops(loops):
        return fits(1)


def train_beside(loops: int) -> list[float]:
    """Return the seconds of training that the command line prints, beside busy loops."""
    with busy_loops(loops):
        return [json.loads(output_of_module("loaded", "--child", "train"))]


ALONE = "alone"
FIT = f"fit of {ROWS} x {COLS}, {CLASSES} classes"
SCENARIOS: dict[str, Callable[[], list[float]]] = {
    ALONE: lambda: fits(1),
    "beside two busy loops": lambda: fits_beside(2),
    "two processes at once": lambda: fits(2),
    "four processes at once": lambda: fits(4),
}
MOST_TIMES_ALONE = {
    "beside two busy loops": 3.0,
    "two processes at once": 2.5,
    "four processes at once": 5.0,
}


def fit_lines(taken: dict[str, list[float]]) -> list[Line]:
    """Compare the median fit of every scenario with that of a process alone."""
    alone = statistics.median(taken[ALONE])
    lines = []
    for name, samples in taken.items():
        median = statistics.median(samples)
        text = f"{shown(median)}, worst {shown(max(samples))}"
        if name == ALONE:
            lines.append(Line(f"{FIT}, {name}", text, "no slower than before", None, samples))
        else:
            most, times = MOST_TIMES_ALONE[name], median / alone
            figure = f"{times:.2f}x alone: {text}"
            bound = f"<= {most:g}x alone"
            lines.append(Line(f"{FIT}, {name}", figure, bound, times <= most, samples))
    return lines


def paused_line(row: Row) -> Line:
    """Compare our first call after a pause with NumPy's."""
    ours, numpy = (row.cold_median(name) for name in (OURS, "numpy"))
    figure = (
        f"{shown(ours)}, worst {shown(max(row.cold[OURS]))} (hot {shown(row.best(OURS))}; "
        f"numpy {shown(numpy)}, hot {shown(row.best('numpy'))})"
    )
    what = f"linear {row.case.size} after a pause of {PAUSE_SECONDS * 1e3:.0f} ms"
    return Line(what, figure, "no slower than numpy", ours <= numpy)


def train_line(taken: Sequence[float]) -> Line:
    median = statistics.median(taken)
    figure = f"{shown(median)}, worst {shown(max(taken))}"
    return Line(TRAIN, figure, f"<= {TRAIN_BOUND} s", median <= TRAIN_BOUND, taken)


def fork_line(parent: int, forked: int) -> Line:
    figure = f"{forked} in the child, {parent} in the parent"
    return Line("threads in a child of fork()", figure, "as many as the parent", forked == parent)


def timed_lines(rounds: int) -> list[Line]:
    """Run the fits and the training in interleaved rounds."""
    fitted: dict[str, list[float]] = {name: [] for name in SCENARIOS}
    trained: list[float] = []
    for _ in range(rounds):
        for name, scenario in SCENARIOS.items():
            print(f"{FIT}, {name}", file=sys.stderr, flush=True)
            fitted[name] += scenario()
        print(TRAIN, file=sys.stderr, flush=True)
        trained += train_beside(1)
    return [*fit_lines(fitted), train_line(trained)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print every figure beside its bound."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    parser.add_argument("--child", choices=CHILDREN, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        print(json.dumps(CHILDREN[options.child]()))
        return

    print(header(), flush=True)
    before = os.getloadavg()[0]
    lines = timed_lines(options.rounds)
    row = measure(LINEAR, N_THREADS, options.rounds * PAUSED_ROUNDS, Peaks(), [OURS, "numpy"])
    forked = json.loads(output_of_module("loaded", "--child", "fork"))
    lines += [paused_line(row), fork_line(*forked)]
    print(f"\nload average at the end {load_average()} (the busy loops are part of it)\n")
    print(markdown(["", "measured", "bound", "kept"], [line.cells for line in lines]))
    if before > IDLE_LOAD:
        print(f"\n{UNSURE} The load average was {before:.2f} at the start: alone was not alone.")


if __name__ == "__main__":
    main()
