"""Kernels, training and prediction compared with other libraries, measured interleaved in one run: one table.

    python -m bench.ratios [--only REGEX] [--rounds N] [--threads 1 2] [--csv FILE]

Ratio = competitor time / our time, of the best times in bursts of calls; cold: of the median first calls after a pause.
To compare at the AVX2 level on a CPU that has more, limit every library before Python starts:

    export BPLS_ISA=avx2 ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2 OPENBLAS_CORETYPE=Haswell
"""

import argparse
import csv
import re
import sys

from .cases import images
from .cases.kernels import CASES, SCALING
from .cases.prediction import PREDICTION
from .cases.training import TRAINING
from .contenders import BARE, OURS
from .measure.environment import header, load_average
from .measure.libraries import INSTALLED
from .measure.peaks import Peaks
from .measure.rounds import Row, measure
from .report.results import NOISY, UNSURE
from .report.text import markdown, shown, times_floors, unsure_mark

LEGEND = (
    "Cells: ratio, best / median, error, and the ratio and median of the first call after a pause. Ratio = competitor\n"
    "time / our time, of the best times; for bare C++, our time from Python / the time without Python. "
    f"{UNSURE} marks a\nratio whose rounds spread by more than {NOISY:.0%}. The error is the largest difference from "
    "float64, relative to the\nlargest value (solve: the backward error)."
)


def cell(row: Row, contender: str) -> str:
    if contender not in row.samples:
        missing = contender in row.case.others and not INSTALLED[contender]
        return "not installed" if missing else ""
    text = f"{shown(row.best(contender))} / {shown(row.median(contender))}"
    if contender in row.errors:
        text += f", {row.errors[contender]:.0e}"
    if contender == BARE:
        floors = times_floors(row.best(BARE), row.floors)
        return ", ".join([f"**{1 / row.ratio(BARE):.2f}x** {text}", *floors])
    cold = shown(row.cold_median(contender))
    if contender == OURS:
        return f"{text}, cold {cold}"
    mark = unsure_mark(row.noise(contender))
    return f"{mark}**{row.ratio(contender):.2f}x** {text}, cold **{row.cold_ratio(contender):.2f}x** {cold}"


def table(rows: list[Row], peaks: Peaks) -> str:
    """Return the rows as one Markdown table."""
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
        names = "kernel dtype size threads contender rounds best median ratio error part_of_peak cold_median noise"
        writer.writerow(names.split())
        for row in rows:
            case, part = row.case, row.part_of_peak(peaks)
            for name, samples in row.samples.items():
                writer.writerow(
                    [
                        *(case.kernel, case.dtype, case.size, row.n_threads, name, len(samples)),
                        *(row.best(name), row.median(name), row.ratio(name)),
                        *(row.errors.get(name), part if name == OURS else None),
                        *((row.cold_median(name), row.noise(name)) if name in row.cold else ()),
                    ]
                )


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", metavar="REGEX", default="", help="cases whose name matches")
    parser.add_argument(
        "--rounds",
        type=int,
        metavar="N",
        help="rounds of every case; by default as many as time allows",
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N")
    parser.add_argument("--csv", metavar="FILE", help="also write the figures to this file")
    options = parser.parse_args()
    available = [*CASES, *SCALING, *([] if images.why_missing() else TRAINING), *PREDICTION]
    cases = [case for case in available if re.search(options.only, case.name)]
    if not cases:
        parser.error(
            f"no case matches {options.only!r}; there are\n"
            + "\n".join(case.name for case in available)
        )

    print(header(images=images.source()), flush=True)
    peaks = Peaks()
    rows: list[Row] = []
    try:
        for case in cases:
            for n_threads in options.threads:
                print(f"{case.name}, {n_threads} thread(s)", file=sys.stderr, flush=True)
                rows.append(measure(case, n_threads, options.rounds, peaks))
                case.release()
    except KeyboardInterrupt:
        print("interrupted: only the rows so far", file=sys.stderr)
    print(f"load average at the end {load_average()}\n{peaks}\n\n{LEGEND}\n\n{table(rows, peaks)}")
    if options.csv:
        write_csv(options.csv, rows, peaks)


if __name__ == "__main__":
    main()
