"""Our kernels and training beside NumPy, SciPy and PyTorch: interleaved calls in one process, one table.

    python bench/ratios.py [--only REGEX] [--rounds N] [--threads 1 2] [--csv FILE]

Ratios are of the best times; above 1 we are faster. To compare at the AVX2 level on a CPU that has more, limit everyone
before Python starts:

    BPLS_ISA=avx2 ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2 OPENBLAS_CORETYPE=Haswell python bench/ratios.py
"""

import argparse
import csv
import re
import sys

import images
from header import header
from interleaved import BARE, Row, measure
from kernel_cases import CASES, INSTALLED, OURS, SCALING
from layout import markdown, shown
from peak import Peaks
from training_cases import TRAINING

LEGEND = (
    "Cells: ratio, best / median, error. A ratio of bests above 1 says that we are faster; beside bare C++ it is what\n"
    "the call from Python takes. The error against float64 is the largest, as a part of the largest value (solve: the\n"
    "backward error)."
)


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
    parser.add_argument(
        "--rounds", type=int, metavar="N", help="of every case; by default as time allows"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N")
    parser.add_argument("--csv", metavar="FILE", help="write the figures there too")
    options = parser.parse_args()
    known = [*CASES, *SCALING, *(TRAINING if images.are_there() else [])]
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
                rows.append(measure(case, n_threads, options.rounds, peaks))
                case.release()
    except KeyboardInterrupt:
        print("interrupted: the rows so far", file=sys.stderr)
    print(f"{peaks}\n\n{LEGEND}\n\n{table(rows, peaks)}")
    if options.csv:
        write_csv(options.csv, rows, peaks)


if __name__ == "__main__":
    main()
