"""Benchmarks of bpls_fast: what is compared, how it is measured, and what is made of the results.

`python -m bench.<command>` and pytest put the root of the clone first on `sys.path`, where the source folder
`bpls_fast` would hide the installed package although it has no compiled extension. Importing `bench` moves the root to
the end.
"""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SMALL = os.environ.get("BPLS_BENCH_SMALL") == "1"
"""Whether all sizes are cut down to a smoke test, whose times mean nothing."""


def _can_be_imported_from_the_clone() -> bool:
    return any((ROOT / "bpls_fast" / f"_core{suffix}").is_file() for suffix in EXTENSION_SUFFIXES)


if not _can_be_imported_from_the_clone():
    sys.path[:] = [*(entry for entry in sys.path if Path(entry).resolve() != ROOT), str(ROOT)]
