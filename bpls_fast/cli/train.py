"""`bpls-fast train`: train on a data set and print the accuracies."""

from __future__ import annotations

import argparse
import time
from typing import Any

import bpls_fast as bf
from bpls_fast.cli.options import (
    DATASETS,
    above_zero,
    add_root,
    check_file,
    layer_sizes,
    natural,
    positive,
)
from bpls_fast.cli.tables import accuracy
from bpls_fast.training.methods import DEFAULT_METHOD, METHODS, Option

__all__ = ["add_parser"]

INPUT_SCALES = {"digits": 1 / 16}
"""What scales the pixels of a data set to [0, 1], where it is not 1/255, the default for bytes."""

OPTIONS = dict.fromkeys(option for method in METHODS.values() for option in method.options)
"""The options that belong to some of the methods, each once."""


def add_parser(commands: Any) -> None:
    """Add the command to a parser's commands."""
    train = commands.add_parser("train", help="train on a data set and print the accuracies")
    train.add_argument("dataset", choices=DATASETS)
    titles = ", ".join(f"{method.name} ({method.title})" for method in METHODS.values())
    train.add_argument(
        "--method",
        choices=tuple(METHODS),
        default=DEFAULT_METHOD,
        help=f"the training method: {titles}; {DEFAULT_METHOD} by default",
    )
    train.add_argument(
        "--hidden",
        type=layer_sizes,
        default=(60,),
        metavar="SIZES",
        help="neurons of the hidden layers, such as 100,70; 60 by default",
    )
    train.add_argument(
        "--activation",
        choices=bf.activations,
        default="softmax",
        metavar="NAME",
        help=f"activation of the hidden layers: {', '.join(bf.activations)}; softmax by default",
    )
    train.add_argument(
        "--seed", type=natural, default=0, help="seed of the initial weights; 0 by default"
    )
    limits = ", ".join(f"{method.default_max_iter} ({name})" for name, method in METHODS.items())
    train.add_argument(
        "--max-iter",
        type=positive,
        metavar="N",
        help=f"the largest number of sweeps; by default {limits}",
    )
    remaining = [*OPTIONS]
    for method in METHODS.values():
        group = train.add_argument_group(method.title)
        for option in method.options:
            if option in remaining:
                remaining.remove(option)
                _add_option(group, option)
    train.add_argument("--save", metavar="MODEL", help="write the network to this .npz file")
    train.add_argument("--quiet", action="store_true", help="print only the accuracies")
    add_root(train)
    train.set_defaults(run=_train)


def _add_option(group: Any, option: Option) -> None:
    """Add an option of a method; it is None unless it is given."""
    named = {"dest": option.argument, "help": option.help}
    if isinstance(option.values, tuple):
        group.add_argument(option.flag, choices=option.values, **named)
    elif option.values is bool:
        group.add_argument(option.flag, action="store_const", const=True, **named)
    else:
        parse = positive if option.values is int else above_zero
        group.add_argument(option.flag, type=parse, metavar="N", **named)


def _train(chosen: argparse.Namespace) -> None:
    options = _fit_options(chosen)
    check_file(chosen.save, "--save")
    began = time.perf_counter()
    data = bf.datasets.load(chosen.dataset, chosen.root)
    loaded = time.perf_counter() - began
    net = bf.Network(
        [data.x_train.shape[1], *chosen.hidden, int(data.y_train.max()) + 1],
        activation=chosen.activation,
        seed=chosen.seed,
        input_scale=INPUT_SCALES.get(chosen.dataset),
    )
    report = METHODS[chosen.method].fit_labels(net, data.x_train, data.y_train, **options)
    if not chosen.quiet:
        print(f"{chosen.dataset}: {len(data.x_train)} training and {len(data.x_test)} test images")
        print(f"{net}, seed {chosen.seed}")
        print(report)
        print(f"loaded in {loaded:.3f} s, trained in {report.seconds['total']:.3f} s")
    print(f"train accuracy {accuracy(net.predict(data.x_train), data.y_train):.2%}")
    print(f"test accuracy  {accuracy(net.predict(data.x_test), data.y_test):.2%}")
    if chosen.save is not None:
        net.save(chosen.save)
        if not chosen.quiet:
            print(f"saved to {chosen.save}")


def _fit_options(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of the fit function; refuse options that the method does not have."""
    method = METHODS[chosen.method]
    given = {option: getattr(chosen, option.argument) for option in OPTIONS}
    given = {option: value for option, value in given.items() if value is not None}
    for option in given:
        if option not in method.options:
            others = " or ".join(
                other.name for other in METHODS.values() if option in other.options
            )
            raise ValueError(
                f"{option.flag} is given and --method is {method.name}; expected --method {others}"
            )
    values = {option.flag: value for option, value in given.items()}
    for option, value in given.items():
        needed = option.requires
        if needed is not None and values.get(needed.flag) != needed.value:
            raise ValueError(
                f"{option.flag} is {value} and {needed.otherwise}; expected {needed.flag} {needed.value}"
            )
    arguments = {option.argument: value for option, value in given.items()}
    if chosen.max_iter is not None:
        arguments[method.max_iter] = chosen.max_iter
    return arguments
