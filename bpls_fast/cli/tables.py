"""Rows and labels to predict, read from .csv, .npy and .npz files or from a data set, and checked."""

from __future__ import annotations

import csv
import io
import warnings
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import bpls_fast as bf
from bpls_fast.cli.options import DATASETS

__all__ = ["Array", "accuracy", "read_rows"]

Array = NDArray[Any]


def accuracy(predicted: Array, labels: Array) -> float:
    """Return the share of the predicted labels that are right."""
    return float(np.mean(predicted == labels))


def read_rows(
    data: str, root: str | None, net: bf.Network, header: str
) -> tuple[Array, Array | None]:
    """Return the rows of a file or a data set, and their labels where they are known."""
    is_csv = data not in DATASETS and Path(data).suffix.lower() == ".csv"
    if header != "auto" and not is_csv:
        raise ValueError(f"--header is {header} and DATA is {data}; expected a .csv file")
    if is_csv:
        return _read_csv(data, header, net)
    if data in DATASETS:
        images = bf.datasets.load(data, root)
        return _checked_rows(data, images.x_test, images.y_test, net)
    arrays = _read_numpy(data)
    if "rows" not in arrays:
        if "x" not in arrays:
            raise ValueError(
                f"{data} has the arrays {', '.join(arrays)}; expected the rows x and perhaps the labels y"
            )
        return _checked_rows(data, arrays["x"], arrays.get("y"), net)
    rows, inputs = arrays["rows"], net.layer_sizes[0]
    if rows.ndim == 2 and rows.shape[1] == inputs + 1:
        return _checked_rows(data, rows[:, :inputs], rows[:, inputs], net)
    return _checked_rows(data, rows, None, net)


def _read_numpy(path: str) -> dict[str, Array]:
    """Read a .npz file's arrays by name, or the one array of a .npy file as "rows"."""
    try:
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {"rows": loaded}
            return {name: loaded[name] for name in loaded.files}
    except (EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            f"{path} is damaged, or not a file of numbers; expected a .npy, .npz or .csv file, or "
            f"{', '.join(DATASETS)}"
        ) from error


class Line(NamedTuple):
    """A line of a .csv file: its number, from 1, and its cells."""

    number: int
    cells: list[str]


def _read_csv(path: str, header: str, net: bf.Network) -> tuple[Array, Array | None]:
    """Return the rows of a .csv file, and their labels if it has a column for them and the network has classes."""
    lines, inputs = _read_lines(path), net.layer_sizes[0]
    _check_delimiter(path, lines)
    if lines and _is_header(path, lines[0], header, inputs):
        del lines[0]
    if not lines:
        raise ValueError(f"{path} has no rows; expected at least 1")
    columns = len(lines[0].cells)
    for number, cells in lines:
        if len(cells) != columns:
            raise ValueError(
                f"{path} has {len(cells)} columns in line {number}; expected {columns}, as in line {lines[0].number}"
            )
    if columns not in (inputs, inputs + 1):
        raise ValueError(
            f"{path} has {columns} columns; expected {inputs}, the network's inputs, or one more with labels"
        )
    X = np.array([_numbers(path, line, inputs) for line in lines])
    if columns == inputs or net.classes is None:
        return X, None
    places = [f"line {number}, column {columns}" for number, _ in lines]
    labels = _labels_of([cells[inputs] for _, cells in lines], net.classes, path, places)
    return _checked_rows(path, X, labels, net)


def _read_lines(path: str) -> list[Line]:
    """Return the lines that are not empty."""
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 text: byte {error.start} is 0x{error.object[error.start]:02x}"
        ) from error
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        return [Line(reader.line_num, cells) for cells in reader if cells]
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read in line {reader.line_num}: {error}") from error


def _check_delimiter(path: str, lines: list[Line]) -> None:
    for delimiter, name in ((";", "semicolons"), ("\t", "tabs")):
        if lines and all(len(cells) == 1 and delimiter in cells[0] for _, cells in lines):
            raise ValueError(f"{path} has {name} between its columns; expected commas")


def _is_header(path: str, line: Line, header: str, inputs: int) -> bool:
    if header != "auto":
        return header == "yes"
    cells = line.cells[:inputs]
    if inputs > 1 and cells == [str(column) for column in range(inputs)]:
        warnings.warn(
            f"line {line.number} of {path} is 0, 1, ... and was read as a row; if it names columns, say --header yes",
            stacklevel=1,
        )
    return not any(_is_number(cell) or not cell.strip() for cell in cells)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(path: str, line: Line, inputs: int) -> Array:
    cells = line.cells[:inputs]
    try:
        return np.array([*map(float, cells)])
    except ValueError as error:
        column = next(column for column, cell in enumerate(cells) if not _is_number(cell))
        raise ValueError(
            f"{path} has {cells[column]!r} in line {line.number}, column {column + 1}; expected a number"
        ) from error


def _labels_of(texts: Sequence[str], classes: Array, data: str, places: Sequence[str]) -> Array:
    """Convert labels that are text to the type of a network's classes; dates stay text."""
    read, expected = _LABEL_TYPES.get(classes.dtype.kind, (str, "text"))
    labels = []
    for text, place in zip(texts, places, strict=True):
        try:
            labels.append(read(text))
        except ValueError as error:
            raise ValueError(
                f"{data} has the label {text!r} in {place}; expected {expected}, as the network's classes are"
            ) from error
    return np.array(labels)


def _boolean(text: str) -> bool:
    named = {"true": True, "false": False}.get(text.strip().lower())
    return bool((0.0, 1.0).index(float(text))) if named is None else named


def _whole(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


_LABEL_TYPES: dict[str, tuple[Callable[[str], Any], str]] = {
    "b": (_boolean, "True or False"),
    "i": (_whole, "a number"),
    "u": (_whole, "a number"),
    "f": (float, "a number"),
    "S": (str.encode, "text"),
}
"""How a label is read, and what it is called in an error, by the kind of the classes' NumPy type."""


def _checked_rows(
    data: str, X: Array, labels: Array | None, net: bf.Network
) -> tuple[Array, Array | None]:
    """Return rows as numbers, and labels in the type of the network's classes."""
    if X.dtype.kind == "U":
        try:
            X = X.astype(np.float64)
        except ValueError as error:
            raise ValueError(f"{data} has a cell that is not a number: {error}") from error
    if labels is None or net.classes is None:
        return X, None
    if labels.shape != (len(X),):
        raise ValueError(
            f"{data} has labels of shape {labels.shape}; expected ({len(X)},), one for each row"
        )
    if labels.dtype.kind == "U":
        places = [f"row {row}" for row in range(len(labels))]
        labels = _labels_of(labels.tolist(), net.classes, data, places)
    if not _can_match(labels, net.classes):
        warnings.warn(
            f"no accuracy is printed: {data} has labels such as {labels.tolist()[0]!r}, the network's classes are such "
            f"as {net.classes.tolist()[0]!r}",
            stacklevel=1,
        )
        return X, None
    return X, labels


def _can_match(labels: Array, classes: Array) -> bool:
    """Return whether labels can equal these classes: numbers and numbers, or booleans and the numbers 0 and 1."""
    if labels.dtype.kind in "biuf" and classes.dtype.kind == "b":
        return bool(np.isin(labels, (0, 1)).all())
    if labels.dtype.kind == "b" and classes.dtype.kind in "iuf":
        return bool(np.isin(classes, (0, 1)).all())
    if labels.dtype.kind in "iuf":
        return classes.dtype.kind in "iuf"
    return labels.dtype.kind == classes.dtype.kind
