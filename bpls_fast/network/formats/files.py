"""Files that appear whole or not at all, and errors of reading that name the file."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from typing import BinaryIO

__all__ = ["Path", "UnreadableError", "opened", "size_of", "written_whole"]

Path = str | os.PathLike[str]


class UnreadableError(Exception):
    """A file is of another version, or what was found in it is not what it says or what was expected."""


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read a network from; whatever is wrong with its bytes becomes a ValueError."""
    path = os.fspath(path)
    with open(path, "rb") as file:
        try:
            yield file
        except MemoryError:
            raise
        except UnreadableError as error:
            raise ValueError(f"{path!r} cannot be read as a network: {error}") from error
        except Exception as error:  # libraries have many ways to fail on bytes that are not theirs
            raise ValueError(
                f"{path!r} cannot be read as a network; it is of another kind or damaged: {error}"
            ) from error


def size_of(file: BinaryIO) -> int:
    """Give the bytes that a file holds; of what is no plain file none are read."""
    return os.fstat(file.fileno()).st_size


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write; it replaces the one at path when all is written, and vanishes if that fails."""
    path = os.fspath(path)
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "the folder of this file does not exist", path)
    handle, unfinished = tempfile.mkstemp(dir=folder, prefix=".bpls-", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        _give_usual_mode(unfinished)
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise


def _give_usual_mode(path: str) -> None:
    """Let the file have the permissions of any new file; a temporary one is its owner's alone."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(path, 0o666 & ~mask)
