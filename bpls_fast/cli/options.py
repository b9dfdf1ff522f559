"""What the commands share: the types of their arguments, data sets, and files and folders checked before any work."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

__all__ = [
    "DATASETS",
    "above_zero",
    "add_root",
    "check_file",
    "layer_sizes",
    "make_folder",
    "natural",
    "positive",
]

DATASETS = ("digits", "mnist", "fashion-mnist")


def layer_sizes(text: str) -> tuple[int, ...]:
    """Parse whole numbers >= 1 between commas."""
    try:
        sizes = tuple(int(size) for size in text.split(","))
    except ValueError:
        sizes = (0,)
    if min(sizes) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}; expected whole numbers >= 1, such as 100,70")
    return sizes


def natural(text: str) -> int:
    """Parse a whole number >= 0."""
    return _whole(text, 0)


def positive(text: str) -> int:
    """Parse a whole number >= 1."""
    return _whole(text, 1)


def _whole(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a whole number >= {least}")
    return int(text)


def above_zero(text: str) -> float:
    """Parse a finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r}; expected a number above 0")
    return number


def add_root(parser: argparse.ArgumentParser) -> None:
    """Add the option for the folder of the data sets."""
    parser.add_argument(
        "--root",
        metavar="FOLDER",
        help="the folder of the data sets, in torchvision's layout; the value of BPLS_DATA by default",
    )


def check_file(path: str | None, option: str) -> None:
    """Refuse a file that could not be written after the work."""
    if path is None:
        return
    if Path(path).is_dir():
        raise IsADirectoryError(f"{option} is {path or repr(path)}, a folder; expected a file")
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{option} is {path}; expected a file in a folder that exists")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{option} is {path}; expected a file in a folder you may write to")


def make_folder(path: Path, option: str) -> None:
    """Create a folder for results; refuse one that cannot be written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise NotADirectoryError(
            f"{option} is {path}, and {error.filename} is a file; expected a folder"
        ) from error
    if not os.access(path, os.W_OK):
        raise PermissionError(f"{option} is {path}; expected a folder you may write to")
