"""`bpls-fast paper`: run the paper's experiments and write their tables and figures."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import bpls_fast as bf
from bpls_fast.cli.options import add_root, make_folder, natural, positive

__all__ = ["add_parser"]


def add_parser(commands: Any) -> None:
    """Add the command to a parser's commands."""
    paper = commands.add_parser(
        "paper", help="run the paper's experiments and compare with its published numbers"
    )
    paper.add_argument("experiment", choices=("table1", "table2", "figures"))
    paper.add_argument(
        "--output",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="the folder for CSV and PNG files",
    )
    paper.add_argument(
        "--seeds", type=positive, metavar="N", help="fits of each image network; 5 by default"
    )
    paper.add_argument(
        "--runs",
        type=positive,
        metavar="N",
        help="Monte Carlo runs of the toy problems; 1000 by default",
    )
    paper.add_argument(
        "--epochs",
        type=natural,
        default=0,
        metavar="N",
        help="epochs of the gradient methods in the image figures. The paper has 40; each takes minutes for 16 curves. "
        "0, the default, shows only the published results",
    )
    paper.add_argument(
        "--quick",
        action="store_true",
        help="a quick look: one seed, 50 runs, short gradient methods",
    )
    add_root(paper)
    paper.set_defaults(run=_paper)


def _paper(chosen: argparse.Namespace) -> None:
    from bpls_fast import experiments
    from bpls_fast.experiments.images import TIMED
    from bpls_fast.experiments.results import as_text, write_csv

    _check_torch(chosen.epochs)
    make_folder(chosen.output, "--output")
    seeds = chosen.seeds or (1 if chosen.quick else 5)
    settings = (TIMED,) if chosen.experiment == "table2" else experiments.SETTINGS
    names = dict.fromkeys(setting.dataset for setting in settings)
    data = {name: bf.datasets.load(name, chosen.root) for name in names}
    if chosen.experiment == "figures":
        _figures(chosen, data, seeds)
        return
    if chosen.experiment == "table1":
        rows: list[Any] = [*experiments.table1(data, seeds=seeds)]
    else:
        steps = 200 if chosen.quick else 2000
        rows = [*experiments.table2(data[TIMED.dataset], seeds=seeds, steps=steps)]
    print(as_text(rows))
    path = chosen.output / f"{chosen.experiment}.csv"
    write_csv(path, rows)
    print(f"written: {path}")


def _check_torch(epochs: int) -> None:
    from bpls_fast.experiments import gradient

    if epochs and not gradient.torch_installed():
        raise ImportError(
            f"--epochs is {epochs} and PyTorch, which runs the gradient methods, is not installed: pip install torch"
        )


def _figures(
    chosen: argparse.Namespace, data: Mapping[str, bf.datasets.DataSet], seeds: int
) -> None:
    from bpls_fast import experiments
    from bpls_fast.experiments import gradient, plots
    from bpls_fast.experiments.images import TIMED
    from bpls_fast.experiments.results import write_csv

    draws = plots.matplotlib_installed()
    if not draws:
        print("matplotlib is not installed, so no PNG is written: pip install 'bpls_fast[plot]'")
    if not gradient.torch_installed():
        print("PyTorch is not installed, so no gradient method is run: pip install torch")

    def write(name: str, rows: Sequence[Any], plot: Any, *arguments: Any) -> None:
        paths = [chosen.output / f"{name}.csv", chosen.output / f"{name}.png"]
        write_csv(paths[0], rows)
        if draws:
            plot(paths[1], *arguments, rows)
        print("written:", *paths[: 1 + draws], flush=True)

    runs, epochs = chosen.runs or (50 if chosen.quick else 1000), 20 if chosen.quick else 1000
    for problem in experiments.PROBLEMS:
        errors = experiments.toy_errors(problem, runs=runs, epochs=epochs)
        write(f"toy_{problem.name}", errors, plots.plot_toy)
    for setting in experiments.SETTINGS:
        points = experiments.accuracy_curves(
            setting, data[setting.dataset], seeds=seeds, epochs=chosen.epochs
        )
        name = f"{setting.dataset}_{setting.layers}".replace("-", "_")
        write(name, points, plots.plot_curves, setting)
    times = experiments.accuracy_and_time(data[TIMED.dataset], seeds=seeds)
    write("accuracy_time", times, plots.plot_time)
