"""The paper's figures as PNG files. matplotlib is optional and imported when the first figure is drawn.

The colours are those of Okabe and Ito, which can be told apart with any kind of colour vision; line styles and
markers differ as well.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from bpls_fast.experiments.images import CurvePoint, TimePoint
from bpls_fast.experiments.published import ALGORITHMS, TABLE1, Setting
from bpls_fast.experiments.toy import LITERAL, ToyError

__all__ = ["matplotlib_installed", "plot_curves", "plot_time", "plot_toy"]

Path = str | os.PathLike[str]


class Style(NamedTuple):
    """How an algorithm is drawn in every figure."""

    color: str
    line: str
    marker: str


STYLES = {
    "BPLS": Style("#0072B2", "-", "o"),
    LITERAL: Style("#56B4E9", "--", "v"),
    "Adam": Style("#E69F00", "-", "s"),
    "NAG": Style("#009E73", "--", "D"),
    "SGD": Style("#D55E00", "-.", "^"),
    "AdaGrad": Style("#CC79A7", ":", "X"),
}
PARTS = {"train": "Training", "test": "Test"}
LOWEST_PERCENT = 45
"""Lower end of the accuracy axis: below every published figure, above the first sweep of deep networks."""

DATASETS = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST"}


def matplotlib_installed() -> bool:
    """Return whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def plot_toy(path: Path, errors: Sequence[ToyError]) -> None:
    """Draw training and test RMSE against sigma, one line per algorithm."""
    figure, axes = _panels(2)
    for axis, (part, title) in zip(axes, PARTS.items(), strict=True):
        for algorithm in _in_order(error.algorithm for error in errors):
            of_algorithm = [error for error in errors if error.algorithm == algorithm]
            style = STYLES[algorithm]
            axis.plot(
                [error.sigma for error in of_algorithm],
                [getattr(error, f"{part}_rmse") for error in of_algorithm],
                color=style.color,
                linestyle=style.line,
                marker=style.marker,
                label=algorithm,
            )
        axis.set(title=title, xlabel="standard deviation σ of the noise", ylabel="RMSE")
        axis.set_yscale("log")
        _plain_numbers(axis.yaxis)
    problem, runs = errors[0].problem, errors[0].runs
    _finish(figure, axes, path, f"Toy problem, {problem} network, {runs} Monte Carlo runs")


def plot_curves(path: Path, setting: Setting, points: Sequence[CurvePoint]) -> None:
    """Draw accuracy against iteration, training and test; level lines show what the paper published."""
    figure, axes = _panels(2)
    for axis, (part, title) in zip(axes, PARTS.items(), strict=True):
        for algorithm in ALGORITHMS:
            style = STYLES[algorithm]
            for seed, run in _runs(points, algorithm):
                axis.plot(
                    [point.iteration for point in run],
                    [getattr(point, part) for point in run],
                    color=style.color,
                    marker=style.marker,
                    markersize=4,
                    markevery=[index for index, point in enumerate(run) if point.kept],
                    linewidth=1.2,
                    label=f"{algorithm}, measured" if seed == 0 else None,
                )
            axis.axhline(
                getattr(TABLE1[setting][algorithm], part),
                color=style.color,
                linestyle=(0, (6, 1, 1, 1, 1, 1)) if algorithm == "BPLS" else style.line,
                linewidth=0.9,
                label=f"{algorithm}, paper's best",
            )
        axis.set(
            title=title,
            xlabel="iteration (BPLS) or epoch",
            ylabel="accuracy (%)",
            ylim=(LOWEST_PERCENT, 100),
        )
        axis.xaxis.get_major_locator().set_params(integer=True)
    seeds = 1 + max(point.seed for point in points)
    title = f"{DATASETS[setting.dataset]}, hidden layers {setting.layers}, {seeds} seeds"
    _finish(figure, axes, path, f"{title}; the marker shows the weights that were kept")


def plot_time(path: Path, points: Sequence[TimePoint]) -> None:
    """Draw test accuracy against the seconds of an iteration or epoch, ours and the paper's."""
    figure, axes = _panels(1)
    for point in points:
        style = STYLES[point.algorithm]
        source, _, detail = point.source.partition(", seed ")
        axes[0].plot(
            point.seconds,
            point.test,
            linestyle="none",
            color=style.color,
            marker="*" if source.startswith("measured") else style.marker,
            markersize=12 if source.startswith("measured") else 7,
            fillstyle="none" if source.endswith("GPU") else "full",
            label=f"{point.algorithm}, {source}" if detail in ("", "0") else None,
        )
    axes[0].set(xlabel="seconds per iteration or epoch", ylabel="test accuracy (%)")
    axes[0].set_xscale("log")
    _plain_numbers(axes[0].xaxis)
    _finish(figure, axes, path, "Fashion-MNIST, hidden layers 100-70")


def _panels(count: int) -> tuple[Any, Sequence[Any]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2 * count + 2.2, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, count, squeeze=False)[0]


def _finish(figure: Any, axes: Sequence[Any], path: Path, title: str) -> None:
    for axis in axes:
        axis.grid(alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper", fontsize=8)
    figure.suptitle(title, fontsize=11)
    figure.savefig(path, dpi=150)


def _plain_numbers(axis: Any) -> None:
    """Label a logarithmic axis at 1, 2 and 5 times the powers of ten, without exponents."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def _in_order(algorithms: Iterable[str]) -> list[str]:
    present = set(algorithms)
    return [algorithm for algorithm in STYLES if algorithm in present]


def _runs(points: Sequence[CurvePoint], algorithm: str) -> list[tuple[int, list[CurvePoint]]]:
    of_algorithm = [point for point in points if point.algorithm == algorithm]
    seeds = sorted({point.seed for point in of_algorithm})
    return [(seed, [point for point in of_algorithm if point.seed == seed]) for seed in seeds]
