"""What tests and benchmarks share: the root of the clone, the import path, and whether a test may be skipped.

`python -m <module>` and pytest put the root first on `sys.path`, where the source folder `bpls_fast` hides the
installed package. If that folder has no compiled extension, importing this module moves the root to the end.
"""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent

MUST_NOT_SKIP = os.environ.get("CI") == "true" and os.environ.get("GITHUB_ACTIONS") != "true"
"""Whether everything is installed and at hand; GitHub's plain test jobs lack some of it."""


def missing(reason: str) -> NoReturn:
    """Skip the test, or fail it where nothing may be missing."""
    import pytest

    if MUST_NOT_SKIP:
        pytest.fail(f"must not be skipped here: {reason}")
    pytest.skip(reason)


def _has_extension() -> bool:
    return any((ROOT / "bpls_fast" / f"_core{suffix}").is_file() for suffix in EXTENSION_SUFFIXES)


if not _has_extension():
    sys.path[:] = [*(entry for entry in sys.path if Path(entry).resolve() != ROOT), str(ROOT)]
