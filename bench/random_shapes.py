"""Kernels at shapes drawn at random, compared with the best of NumPy, SciPy and PyTorch.

    python -m bench.random_shapes [--seed N] [--draws N] [--kernels gram linear] [--dtypes float32] [--threads 2]

Rows are drawn from 32 to 200,000, columns and unknowns from 4 to 1,500, right sides from 1 to 300, all log-uniform; a
shape beyond the limits of bench/cases/shapes.py is drawn anew. The draws are dealt to the kernels and types in turn;
the shapes of one do not depend on which others are chosen.

Hot is the best call of a burst, cold the median first call after a pause of 40 ms. Ratio = time of the fastest
competitor / our time. A mark for noise stands at a hot ratio that is uncertain.
"""

import argparse
import secrets
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .cases.shapes import DTYPES, deal, drawn_cases
from .contenders import OURS
from .measure.environment import header, load_average
from .measure.libraries import INSTALLED
from .measure.peaks import Peaks
from .measure.rounds import Row, measure
from .report.text import markdown, shown, summary, times, unsure_mark

RIVALS = ("numpy", "scipy", "torch")


class Outcome(NamedTuple):
    """The fastest competitor of a shape, its time and ours."""

    shape: str
    rival: str
    theirs: float
    ours: float

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours

    def __str__(self) -> str:
        return f"{times(self.ratio)} {self.rival} ({shown(self.theirs)} / {shown(self.ours)})"


def against_fastest(row: Row, seconds: Callable[[str], float]) -> Outcome:
    """Compare ours with the fastest competitor of a row."""
    rival = min(row.rivals, key=seconds)
    return Outcome(row.case.size, rival, seconds(rival), seconds(OURS))


def table(hot: dict[str, list[Outcome]], cold: dict[str, list[Outcome]]) -> str:
    """Return a line per kernel and type."""
    kinds = {name: outcomes for name, outcomes in (("hot", hot), ("cold", cold)) if outcomes}
    names = [f"{kind}: {text}" for kind in kinds for text in ("geometric mean", "won", "worst")]
    lines = [
        [
            *(name, str(len(cold[name]))),
            *(
                cell
                for of in kinds.values()
                for cell in summary([(o.ratio, o.shape) for o in of[name]])
            ),
        ]
        for name in cold
    ]
    return markdown(["", "draws", *names], lines)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, help="by default another one in every run")
    parser.add_argument("--draws", type=int, default=100, metavar="N", help="of all together")
    parser.add_argument("--kernels", nargs="+", choices=DTYPES, default=list(DTYPES))
    parser.add_argument(
        "--dtypes",
        nargs="+",
        choices=DTYPES["gram"],
        help="of gram, linear and cross; by default all of gram and float32 of the others",
    )
    parser.add_argument("--threads", type=int, default=2, metavar="N")
    parser.add_argument("--rounds", type=int, metavar="N", help="by default as time allows")
    parser.add_argument("--cold", action="store_true", help="only first calls after a pause")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line per draw, then the summary of every kernel and type."""
    options = parse(arguments)
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    print(header(seed=str(seed)), flush=True)
    streams = {
        f"{kernel} {dtype}": drawn_cases(kernel, dtype, seed)
        for kernel in options.kernels
        for dtype in (kernel != "solve" and options.dtypes) or DTYPES[kernel]
    }
    names = list(streams)
    contenders = [OURS, *(name for name in RIVALS if INSTALLED[name])]
    hot: dict[str, list[Outcome]] = {}
    cold: dict[str, list[Outcome]] = {}
    peaks = Peaks()
    try:
        for stream, case in deal(list(streams.values()), options.draws):
            name = names[stream]
            row = measure(
                *(case, options.threads, options.rounds, peaks, contenders),
                bursts=not options.cold,
            )
            parts = []
            if not options.cold:
                outcome = against_fastest(row, row.best)
                hot.setdefault(name, []).append(outcome)
                mark = unsure_mark(row.noise(outcome.rival))
                peak = row.part_of_peak(peaks) or 0
                parts.append(f"{mark}hot {outcome}, {peak:.0%} of peak")
            outcome = against_fastest(row, row.cold_median)
            cold.setdefault(name, []).append(outcome)
            print(f"{case.name}: {'; '.join([*parts, f'cold {outcome}'])}", flush=True)
    except KeyboardInterrupt:
        print("interrupted: only the draws so far", file=sys.stderr)
    print(f"\nseed {seed}, {options.threads} thread(s), load average at the end {load_average()}\n")
    print(table(hot, cold))


if __name__ == "__main__":
    main()
