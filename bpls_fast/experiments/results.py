"""Results as CSV files and as text. A result is a sequence of named tuples whose fields are the columns."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from typing import Any

__all__ = ["as_text", "write_csv"]


def write_csv(path: str | os.PathLike[str], rows: Sequence[Any]) -> None:
    """Write named tuples to a CSV file with a header line; None becomes an empty cell."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0]._fields)
        writer.writerows(rows)


def as_text(rows: Sequence[Any]) -> str:
    """Return named tuples as a text table with aligned columns and four digits.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> from bpls_fast.experiments.results import as_text
    >>> class Row(NamedTuple):
    ...     name: str
    ...     seconds: float | None
    >>> print(as_text([Row("a", 0.123456), Row("longer", None)]))
    name    seconds
    a        0.1235
    longer        -
    """
    lines = [rows[0]._fields, *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    left = [isinstance(value, str) for value in rows[0]]
    return "\n".join(
        "  ".join(
            text.ljust(width) if is_text else text.rjust(width)
            for text, width, is_text in zip(line, widths, left, strict=True)
        ).rstrip()
        for line in lines
    )


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:#.4g}" if isinstance(value, float) else str(value)
