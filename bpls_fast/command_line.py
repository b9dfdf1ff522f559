"""The `bpls-fast` command."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import numpy as np

import bpls_fast as bf

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give its exit code.

    Examples
    --------
    >>> from bpls_fast.command_line import main
    >>> main(["info"])  # doctest: +ELLIPSIS
    bpls_fast ...
    0
    """
    parser = argparse.ArgumentParser(
        prog="bpls-fast", description="Closed-form training of neural networks."
    )
    parser.add_argument("--version", action="version", version=f"bpls_fast {bf.__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="show the version, compiler, instruction sets and threads")
    train = commands.add_parser("train", help="train on a data set and print the accuracies")
    train.add_argument("dataset", choices=["digits"])
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "info":
            bf.show_config()
        else:
            _train(chosen.dataset)
    except ImportError as error:
        print(f"bpls-fast: {error}", file=sys.stderr)
        return 1
    return 0


def _train(dataset: str) -> None:
    x_train, y_train, x_test, y_test = bf.datasets.load(dataset)
    targets = np.eye(y_train.max() + 1)[y_train]
    began = time.perf_counter()
    weights = bf.solve_layer(x_train, targets, bias=True)
    seconds = time.perf_counter() - began

    def accuracy(x: np.ndarray, y: np.ndarray) -> float:
        return float(np.mean(bf.linear(x, weights, bias=True).argmax(axis=1) == y))

    print(f"{dataset}: {len(x_train)} training and {len(x_test)} test images")
    print("one closed-form layer (a linear classifier; hidden layers are not trained yet)")
    print(f"trained in {seconds * 1e3:.2f} ms")
    print(f"train accuracy {accuracy(x_train, y_train):.2%}")
    print(f"test accuracy  {accuracy(x_test, y_test):.2%}")
