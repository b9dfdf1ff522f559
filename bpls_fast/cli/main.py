"""The `bpls-fast` command: its parser, its errors and its exit codes.

An error is one sentence on standard error, with exit code 2. Results go to standard output.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

import bpls_fast as bf
from bpls_fast.cli import paper, predict, train

__all__ = ["main"]

EXPECTED = (
    ImportError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    np.linalg.LinAlgError,
)
"""The exceptions that the package raises for something a user can correct."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Examples
    --------
    >>> from bpls_fast.cli import main
    >>> main(["info"])  # doctest: +ELLIPSIS
    bpls_fast ...
    0
    """
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if chosen.places:
        print(*(place() for place in chosen.places))
        return 0
    if chosen.command is None:
        parser.error("the following arguments are required: COMMAND")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = _show_warning
            chosen.run(chosen)
            sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except EXPECTED as error:
        return _fail(error)
    except KeyboardInterrupt:
        print("bpls-fast: interrupted", file=sys.stderr)
        return 130
    return 0


def _fail(error: Exception) -> int:
    sentence = " ".join(str(error).split()) or type(error).__name__
    print(f"bpls-fast: {sentence}", file=sys.stderr)
    return 2


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"bpls-fast: warning: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bpls-fast", description="Closed-form training of neural networks."
    )
    parser.add_argument("--version", action="version", version=f"bpls_fast {bf.__version__}")
    for option, place, what in (
        ("--cmakedir", bf.get_cmake_dir, "print the folder for CMAKE_PREFIX_PATH"),
        ("--includes", lambda: f"-I{bf.get_include()}", "print the compiler's options"),
        ("--libs", bf.get_libs, "print the linker's options"),
    ):
        parser.add_argument(
            option, dest="places", action="append_const", const=place, default=[], help=what
        )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    info = commands.add_parser(
        "info", help="show the version, compiler, instruction sets and threads"
    )
    info.set_defaults(run=lambda _: bf.show_config())
    for command in (train, predict, paper):
        command.add_parser(commands)
    return parser
