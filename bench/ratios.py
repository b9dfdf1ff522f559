"""Our kernels and training beside NumPy, SciPy and PyTorch: interleaved calls in one process, one table.

    python bench/ratios.py [--only REGEX] [--rounds N] [--threads 1 2] [--csv FILE]

Ratios are of the best times; above 1 we are faster. To compare at the AVX2 level on a CPU that has more, limit everyone
before Python starts:

    BPLS_ISA=avx2 ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2 OPENBLAS_CORETYPE=Haswell python bench/ratios.py
"""

import argparse
import csv
import math
import re
import statistics
import sys
import time
from dataclasses import dataclass, field

import images
from header import header
from kernel_cases import CASES, INSTALLED, OURS, PAUSE_SECONDS, Call, Case, limited, seconds
from layout import markdown, shown
from peak import Peaks
from training_cases import TRAINING

# Shorter calls are warmed up after the pause, and repeated until a sample is this long.
SAMPLE_SECONDS = 0.005
BARE = "Python / bare C++"
LEGEND = (
    "Cells: ratio, best / median, error. A ratio of bests above 1 says that we are faster; beside bare C++ it is what\n"
    "the call from Python takes. The error against float64 is the largest, as a part of the largest value (solve: the\n"
    "backward error)."
)


@dataclass
class Row:
    """A case at a number of threads: seconds of every sample, and errors, by contender."""

    case: Case
    n_threads: int
    samples: dict[str, list[float]] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)

    def best(self, contender: str) -> float:
        return min(self.samples[contender])

    def median(self, contender: str) -> float:
        return statistics.median(self.samples[contender])

    def ratio(self, contender: str) -> float:
        """Give how many times faster we are."""
        return self.best(contender) / self.best(OURS)

    def part_of_peak(self, peaks: Peaks) -> float | None:
        if not self.case.operations:
            return None
        peak = peaks.best(self.case.arithmetic, self.n_threads)
        return self.case.operations / self.best(OURS) / peak


def repeats_for(call: Call) -> int:
    """Give the calls that make up a sample."""
    return math.ceil(SAMPLE_SECONDS / min(seconds(call) for _ in range(3)))


def sample(call: Call, repeats: int) -> float:
    time.sleep(PAUSE_SECONDS)
    if repeats > 1:
        call()
    return seconds(call, repeats)


def measure(case: Case, n_threads: int, rounds: int, peaks: Peaks) -> Row:
    """Check every answer, then let the contenders take turns."""
    row = Row(case, n_threads)
    with limited(n_threads):
        contenders = [name for name in case.contenders if INSTALLED.get(name, True)]
        calls = {name: case.call(name, n_threads) for name in contenders}
        row.errors = {name: case.checked_error(name, call()) for name, call in calls.items()}
        repeats = {name: repeats_for(call) for name, call in calls.items()}
        row.samples = {name: [] for name in calls}
        if case.bare:
            row.samples[BARE] = []
        for _ in range(rounds):
            for name, call in calls.items():
                row.samples[name].append(sample(call, repeats[name]))
            if case.bare:
                time.sleep(PAUSE_SECONDS)
                row.samples[BARE].append(case.bare(*case.arrays, n_threads, repeats[OURS]))
            if case.operations:
                peaks.measure(case.arithmetic, n_threads)
    return row


def cell(row: Row, contender: str) -> str:
    if contender not in row.samples:
        missing = contender in row.case.others and not INSTALLED[contender]
        return "not installed" if missing else ""
    text = f"{shown(row.best(contender))} / {shown(row.median(contender))}"
    if contender in row.errors:
        text += f", {row.errors[contender]:.0e}"
    if contender == OURS:
        return text
    # Of a call without Python: how much longer the call from Python takes.
    ratio = 1 / row.ratio(BARE) if contender == BARE else row.ratio(contender)
    return f"**{ratio:.2f}x** {text}"


def table(rows: list[Row], peaks: Peaks) -> str:
    """Lay the rows out as one Markdown table."""
    columns = list(dict.fromkeys(name for row in rows for name in row.case.contenders))
    if any(BARE in row.samples for row in rows):
        columns.append(BARE)
    lines: list[list[str]] = []
    for row in rows:
        part = row.part_of_peak(peaks)
        lines.append(
            [
                f"{row.case.kernel} {row.case.dtype}",
                row.case.size,
                str(row.n_threads),
                str(len(row.samples[OURS])),
                *(cell(row, name) for name in columns),
                "" if part is None else f"{part:.0%}",
            ]
        )
    names = ["kernel", "size", "threads", "rounds", *columns, "of peak"]
    return markdown(names, lines)


def write_csv(path: str, rows: list[Row], peaks: Peaks) -> None:
    """Write one line per contender."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        names = "kernel dtype size threads contender rounds best median ratio error part_of_peak"
        writer.writerow(names.split())
        for row in rows:
            case, part = row.case, row.part_of_peak(peaks)
            for name, samples in row.samples.items():
                writer.writerow(
                    [
                        *(case.kernel, case.dtype, case.size, row.n_threads, name, len(samples)),
                        *(row.best(name), row.median(name), row.ratio(name)),
                        *(row.errors.get(name), part if name == OURS else None),
                    ]
                )


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", metavar="REGEX", default="", help="cases whose name matches")
    parser.add_argument("--rounds", type=int, metavar="N", help="of every case, however long")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N")
    parser.add_argument("--csv", metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    known = [*CASES, *(TRAINING if images.fashion_is_there() else [])]
    cases = [case for case in known if re.search(options.only, case.name)]
    if not cases:
        parser.error(
            f"no case matches {options.only!r}; there are\n"
            + "\n".join(case.name for case in known)
        )

    print(header(images=images.source()), flush=True)
    peaks = Peaks()
    rows: list[Row] = []
    try:
        for case in cases:
            for n_threads in options.threads:
                print(f"{case.name}, {n_threads} thread(s)", file=sys.stderr, flush=True)
                rows.append(measure(case, n_threads, options.rounds or case.rounds, peaks))
    except KeyboardInterrupt:
        print("interrupted: the rows so far", file=sys.stderr)
    print(f"{peaks}\n\n{LEGEND}\n\n{table(rows, peaks)}")
    if options.csv:
        write_csv(options.csv, rows, peaks)


if __name__ == "__main__":
    main()
