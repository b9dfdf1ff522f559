"""What the tests of the command line share: processes, failures, small files of rows."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from bpls_fast.cli import main
from tests.support.subprocesses import Finished, run_python

needs_sklearn = pytest.mark.skipif(
    importlib.util.find_spec("sklearn") is None, reason="digits is scikit-learn's"
)


def bpls_fast(*arguments: str) -> Finished:
    return run_python("-m", "bpls_fast", *arguments)


def accuracy(output: str, part: str) -> float:
    """Find the percentage that follows "train" or "test", with no other number between the two."""
    found = re.search(rf"\b{part}\D*?(\d+(?:\.\d+)?) ?%", output, re.IGNORECASE)
    assert found, f"no {part} accuracy in:\n{output}"
    return float(found[1])


ROWS = np.array([[1.0, 2.0], [-1.0, -2.0], [-3.0, 1.0], [3.0, -1.0]])
LABELS = np.array([1, 0, 1, 1])  # three of four are what the network says


def write_data(path: Path, rows: np.ndarray, labels: np.ndarray | None = None) -> Path:
    """Write rows to a file of the kind that its name says, and labels where they belong in it."""
    if path.suffix == ".npz":
        np.savez(path, x=rows, **({} if labels is None else {"y": labels}))
        return path
    if labels is not None:
        rows = np.column_stack([rows, labels])
    if path.suffix == ".npy":
        np.save(path, rows)
    else:
        path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows.tolist()))
    return path


def failure(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Give the one sentence of a command that must fail with nothing on standard output."""
    assert main([str(argument) for argument in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("bpls-fast: ")
    assert len(printed.err.splitlines()) == 1
    return printed.err
