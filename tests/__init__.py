"""The tests: a folder for each package of bpls_fast, and support/ for what they share.

A clone without a compiled extension must not hide the installed package: its root goes to the end of sys.path.
"""

import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

if not any((ROOT / "bpls_fast" / f"_core{suffix}").is_file() for suffix in EXTENSION_SUFFIXES):
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != ROOT] + [str(ROOT)]
