"""Write the report of a run of the suite: one HTML page that needs no other file, and a Markdown twin with PNG files.

    python -m bench.report out.json [--again second.json] [--output report]

A second run of the same suite marks the ratios that it does not confirm.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from .render import write
from .results import load


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the report of a file of results."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.report", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("run", type=Path, help="the file that --benchmark-json wrote")
    parser.add_argument(
        "--again", type=Path, help="a second run; ratios that it does not confirm are marked"
    )
    parser.add_argument("--output", type=Path, default=Path("report"), metavar="FOLDER")
    options = parser.parse_args(arguments)
    try:
        run = load(options.run)
        again = load(options.again) if options.again else None
    except (OSError, ValueError) as error:
        parser.error(str(error))
    write(run, again, options.output)
    print(f"{options.output / 'benchmarks.html'}, {options.output / 'benchmarks.md'}")


if __name__ == "__main__":
    main()
