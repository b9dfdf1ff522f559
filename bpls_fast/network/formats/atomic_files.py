"""Files that are written completely or not at all, and read errors that name the file."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from typing import BinaryIO

__all__ = ["Path", "UnreadableError", "file_size", "open_to_read", "write_atomically"]

Path = str | os.PathLike[str]


class UnreadableError(Exception):
    """A file has another version, or its content is not what its header says or what was expected."""


@contextlib.contextmanager
def open_to_read(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read a network from; any error in its bytes becomes a ValueError."""
    path = os.fspath(path)
    with open(path, "rb") as file:
        try:
            yield file
        except MemoryError:
            raise
        except UnreadableError as error:
            raise ValueError(f"{path!r} cannot be read as a network: {error}") from error
        except Exception as error:  # parsers fail in many ways on foreign bytes
            raise ValueError(
                f"{path!r} cannot be read as a network; it is of another kind or damaged: {error}"
            ) from error


def file_size(file: BinaryIO) -> int:
    """Return the number of bytes in a file; 0 for anything but a regular file."""
    return os.fstat(file.fileno()).st_size


@contextlib.contextmanager
def write_atomically(path: Path) -> Iterator[BinaryIO]:
    """Open a new file to write; it replaces the file at `path` at the end, or is deleted on an error."""
    path = os.fspath(path)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "the folder of this file does not exist", path)
    handle, unfinished = tempfile.mkstemp(dir=folder, prefix=".bpls-", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        _set_default_mode(unfinished)
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise


def _set_default_mode(path: str) -> None:
    """Set the permissions of any new file; those of a temporary file are for its owner only."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(path, 0o666 & ~mask)
