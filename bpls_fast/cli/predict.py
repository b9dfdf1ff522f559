"""`bpls-fast predict`: print or write the label of each row."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import bpls_fast as bf
from bpls_fast.cli.options import DATASETS, add_root, check_file
from bpls_fast.cli.tables import Array, accuracy, read_rows

__all__ = ["add_parser"]


def add_parser(commands: Any) -> None:
    """Add the command to a parser's commands."""
    predict = commands.add_parser(
        "predict",
        help="predict the labels of rows",
        description="Print a label for each row, or write them to a file, and the accuracy if labels are known.",
    )
    predict.add_argument("model", metavar="MODEL", help="a file that train --save wrote")
    predict.add_argument(
        "data",
        metavar="DATA",
        help="a .npy or .csv file of rows, in which a column after the network's inputs holds labels; a .npz file "
        f"with the rows x and perhaps the labels y; or the test part of {', '.join(DATASETS)}",
    )
    predict.add_argument(
        "--output",
        metavar="FILE",
        help="write the labels to this file: .npy, or text with one label a line",
    )
    predict.add_argument(
        "--header",
        choices=("yes", "no", "auto"),
        default="auto",
        help="whether the first line of a .csv file names the columns; auto, the default: it does if none of its "
        "inputs is a number or empty",
    )
    add_root(predict)
    predict.set_defaults(run=_predict)


def _predict(chosen: argparse.Namespace) -> None:
    check_file(chosen.output, "--output")
    net = bf.Network.load(chosen.model)
    X, labels = read_rows(chosen.data, chosen.root, net, chosen.header)
    predicted = net.predict(X)
    if chosen.output is None:
        _write_text(sys.stdout, predicted)
    elif Path(chosen.output).suffix.lower() == ".npy":
        with open(chosen.output, "wb") as binary:  # given a name, save would add .npy to .NPY
            np.save(binary, predicted, allow_pickle=False)
    else:
        with open(chosen.output, "w", encoding="utf-8") as file:
            _write_text(file, predicted)
    if labels is not None:
        # Printed labels may go down a pipe, which the accuracy must not enter.
        stream = sys.stderr if chosen.output is None else sys.stdout
        print(f"accuracy {accuracy(predicted, labels):.2%} of {len(labels)} rows", file=stream)


def _write_text(file: Any, predicted: Array) -> None:
    """Write one label a line, or the outputs of a network without classes, separated by commas."""
    for row in predicted.tolist():
        file.write(",".join(map(str, row)) if isinstance(row, list) else str(row))
        file.write("\n")
