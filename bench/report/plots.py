"""The pictures of the report, in colours that colour-blind people can tell apart.

Each function returns a figure of matplotlib, or None if the run has nothing to draw.
"""

import re
from collections.abc import Sequence
from typing import Any

from ..contenders import (
    ADAM,
    ALGORITHM_2,
    BARE,
    COMPILED_ADAM,
    ELM,
    MLP,
    NUMKONG,
    NUMKONG_TRANSPOSING,
    OURS,
    OURS_FLOAT32,
    RBF_RIDGE,
    TABLE_MLP,
)
from .results import Group, Run

# Okabe and Ito's colours with a darker yellow, and two more; ours is blue everywhere.
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
SKY, RED, YELLOW, BLACK = "#56B4E9", "#D55E00", "#C9B800", "#000000"
BROWN, GREY = "#6B4C2A", "#8A8A8A"
COLOURS = {
    OURS: BLUE,
    OURS_FLOAT32: SKY,
    ALGORITHM_2: SKY,
    BARE: SKY,
    "numpy": ORANGE,
    "scipy": GREEN,
    "torch": RED,
    "TorchScript": PINK,
    "onnxruntime": BLACK,
    NUMKONG: BLACK,
    NUMKONG_TRANSPOSING: GREY,
    MLP: BROWN,
    TABLE_MLP: BROWN,
    RBF_RIDGE: GREY,
    ELM: YELLOW,
    "Adam": RED,
    "NAG": PINK,
    "SGD": GREEN,
    "AdaGrad": ORANGE,
    ADAM: RED,
    COMPILED_ADAM: BLACK,
    "NAG, tuned": PINK,
    "SGD, tuned": GREEN,
    "AdaGrad, tuned": ORANGE,
}
MARKERS = "osD^vP*Xd<>"
SHOWN_RANGE = 0.4
"""Accuracies that are further below the best are in the legend only."""
BOTH_CORES = 2


def new_figure(columns: int = 1, width: float = 7.0, height: float = 4.2) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height), layout="constrained")
    return figure, figure.subplots(1, columns, squeeze=False)[0]


def colour(contender: str) -> str:
    return COLOURS.get(contender) or COLOURS.get(contender.partition(",")[0], GREY)


def dress(axes: Any, title: str, x: str, y: str) -> None:
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.grid(True, which="major", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


# ---- kernels


def ratios(groups: Sequence[Group], title: str) -> Any | None:
    """Draw the ratio to each competitor, by group."""
    groups = [group for group in groups if group.compared]
    if not groups:
        return None
    figure, (axes,) = new_figure(width=8.5, height=1.4 + 0.32 * len(groups))
    names = list(dict.fromkeys(name for group in groups for name in group.compared))
    for place, name in enumerate(names):
        points = [
            (ratio, len(groups) - 1 - index)
            for index, group in enumerate(groups)
            if (ratio := group.ratio(name)) is not None
        ]
        if points:
            x, y = zip(*points, strict=True)
            axes.scatter(x, y, color=colour(name), marker=MARKERS[place], s=42, label=name)
    axes.axvline(1, color=BLACK, linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.set_yticks(range(len(groups)), [group.name for group in reversed(groups)])
    axes.set_ylim(-0.7, len(groups) - 0.3)
    dress(axes, title, "competitor time / our time (best times); left of 1x we lose", "")
    figure.legend(loc="outside lower center", ncols=5)
    return figure


def kernel_ratios(run: Run) -> Any | None:
    both = [g for g in run.of_suite("kernels") if threads_of(g) == BOTH_CORES]
    return ratios(both, "Kernels, 2 threads")


def threads_of(group: Group) -> int | None:
    value = group.results[OURS].info.get("threads") if OURS in group.results else None
    return None if value is None else int(value)


def scaling(run: Run) -> Any | None:
    """Draw time against rows, columns and unknowns, with the expected law."""
    groups = [group for group in run.of_suite("scaling") if threads_of(group) == BOTH_CORES]
    if not groups:
        return None
    figure, panels = new_figure(columns=3, width=4.8)
    grams = [group for group in groups if "gram" in kernel_of(group)]
    wide = max(grams, key=rows_of, default=None)
    if wide:
        cols = wide.results[OURS].info["cols"]
        same = [group for group in grams if group.results[OURS].info["cols"] == cols]
        lines(panels[0], same, "rows", 1, "linear")
        dress(panels[0], f"Gram matrix, {cols} columns", "rows", "seconds (best)")
        counts = [rows_of(group) for group in grams]
        rows = max(set(counts), key=counts.count)
        same = [group for group in grams if rows_of(group) == rows]
        lines(panels[1], same, "cols", 2, "quadratic")
        dress(panels[1], f"Gram matrix, {rows} rows", "columns", "seconds (best)")
    lines(panels[2], [g for g in groups if "solve" in kernel_of(g)], "cols", 3, "cubic")
    dress(panels[2], "Cholesky solve, 60 right-hand sides", "unknowns", "seconds (best)")
    return figure


def kernel_of(group: Group) -> str:
    return str(group.results[OURS].info["kernel"])


def rows_of(group: Group) -> int:
    return int(group.results[OURS].info["rows"])


def lines(axes: Any, groups: Sequence[Group], along: str, power: int, law: str) -> None:
    """Draw our time by type of data, the best competitor as a thin line, and a law through our last point."""
    end = None
    kinds = list(dict.fromkeys(kernel_of(group) for group in groups))
    for kind, shade, marker in zip(kinds, (BLUE, GREEN, RED), MARKERS, strict=False):
        of_kind = sorted(
            (group for group in groups if kernel_of(group) == kind),
            key=lambda group: int(group.results[OURS].info[along]),
        )
        x = [int(group.results[OURS].info[along]) for group in of_kind]
        y = [group.results[OURS].best for group in of_kind]
        axes.plot(x, y, color=shade, marker=marker, label=kind.split()[-1])
        others = [min(group.results[name].best for name in group.compared) for group in of_kind]
        axes.plot(x, others, color=shade, linewidth=1, linestyle=":")
        end = end or (x, y[-1])
    if end:
        x, last = end
        axes.plot(
            x,
            [last * (value / x[-1]) ** power for value in x],
            color="#999999",
            label=law,
            zorder=1,
        )
    axes.plot([], [], color=BLACK, linewidth=1, linestyle=":", label="best competitor")
    axes.set(xscale="log", yscale="log")
    axes.legend(fontsize=8)


def threads(run: Run) -> Any | None:
    """Draw the speed-up by a second thread; twofold is the most."""
    pairs: dict[str, dict[int, Group]] = {}
    for group in [*run.of_suite("kernels"), *run.of_suite("training")]:
        count = threads_of(group)
        if count:
            pairs.setdefault(group.name.rpartition(",")[0], {})[count] = group
    pairs = {name: pair for name, pair in pairs.items() if {1, BOTH_CORES} <= set(pair)}
    if not pairs:
        return None
    figure, (axes,) = new_figure(width=8.5, height=1.4 + 0.3 * len(pairs))
    names = list(pairs)[::-1]
    contenders = [OURS, "numpy", "torch"]
    for place, contender in enumerate(contenders):
        points = [
            (pair[1].results[contender].best / pair[BOTH_CORES].results[contender].best, index)
            for index, name in enumerate(names)
            if contender in (pair := pairs[name])[1].results
            and contender in pair[BOTH_CORES].results
        ]
        if points:
            x, y = zip(*points, strict=True)
            axes.scatter(x, y, color=colour(contender), marker=MARKERS[place], label=contender)
    axes.axvline(2, color=BLACK, linewidth=1, linestyle="--")
    axes.axvline(1, color="#999999", linewidth=1)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(left=0)
    dress(axes, "Two threads", "speed-up over one thread; dashed: the linear law", "")
    figure.legend(loc="outside lower center", ncols=5)
    return figure


def levels(run: Run) -> Any | None:
    """Draw the seconds of each case by instruction set."""
    groups = [group for group in run.of_suite("levels") if threads_of(group) == BOTH_CORES]
    if not groups:
        return None
    cases = list(dict.fromkeys(kernel_of(group) for group in groups))
    figure, (axes,) = new_figure(width=8.5, height=5)
    order = list(dict.fromkeys(str(group.results[OURS].info["level"]) for group in groups))
    shades = dict(zip(cases, (BLUE, ORANGE, GREEN, RED, PINK, SKY, BLACK), strict=False))
    for case, marker in zip(cases, MARKERS, strict=False):
        of_case = [group for group in groups if kernel_of(group) == case]
        by_level = {str(group.results[OURS].info["level"]): group for group in of_case}
        y = [by_level[level].results[OURS].best for level in order]
        axes.plot(order, y, color=shades[case], marker=marker, label=case)
        others = [min(g.results[n].best for n in g.compared) for g in map(by_level.get, order) if g]
        axes.plot(order, others, color=shades[case], linestyle=":", linewidth=1)
    axes.set_yscale("log")
    dress(axes, "Instruction sets, 2 threads", "level; dotted: best competitor", "seconds (best)")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=8)
    return figure


# ---- training


def accuracy(groups: Sequence[Group], title: str) -> Any | None:
    """Draw accuracy against time for all contenders of some groups on one log axis."""
    if not groups:
        return None
    figure, (axes,) = new_figure(width=9.5, height=5.2)
    place = 0
    for group in groups:
        papers = "paper's settings" in group.name
        for name, result in group.results.items():
            if papers and name == OURS:
                continue
            x, y = zip(*result.info["points"], strict=True)
            label = f"{name}, the paper's settings" if papers else name
            axes.plot(
                *(x, [100 * value for value in y]),
                color=colour(name),
                marker=MARKERS[place % len(MARKERS)],
                markersize=5,
                linewidth=2.5 if name == OURS else 1.2,
                linestyle="--" if papers else "-",
                zorder=3 if name == OURS else 2,
                label=f"{label}: at most {max(y):.1%}",
            )
            place += 1
    best = [result.info["accuracy"] for group in groups for result in group.results.values()]
    axes.set_xscale("log")
    axes.set_ylim(100 * max(min(best) - 0.02, max(best) - SHOWN_RANGE), 100 * max(best) + 0.5)
    dress(axes, title, "seconds from the arrays in memory (log)", "test accuracy, %")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=8)
    return figure


def dots(group: Group, title: str) -> Any:
    """Draw the best seconds of each contender as dots, since bars have no base on a log axis."""
    figure, (axes,) = new_figure(width=8, height=1.2 + 0.36 * len(group.results))
    for place, result in enumerate(reversed(group.results.values())):
        axes.scatter(result.best, place, color=colour(result.contender), s=70)
        mark = "" if result.reached else ", not reached"
        axes.annotate(
            *(f"{result.best:.3g} s{mark}", (result.best, place)),
            xytext=(9, -4),
            textcoords="offset points",
        )
    axes.set_yticks(range(len(group.results)), list(group.results)[::-1])
    axes.set_xscale("log")
    axes.margins(x=0.2, y=0.12)
    dress(axes, title, "seconds (best, log)", "")
    return figure


def memory(group: Group) -> Any:
    figure, (axes,) = new_figure(width=8, height=1.2 + 0.4 * len(group.results))
    names = list(group.results)[::-1]
    sizes = [group.results[name].info["more_bytes"] / 2**20 for name in names]
    drawn = axes.barh(names, sizes, color=[colour(name) for name in names])
    axes.bar_label(drawn, [f"{size:.0f}" for size in sizes], padding=3)
    dress(
        axes,
        "Peak memory of a training",
        "MiB above the memory with the images loaded as bytes",
        "",
    )
    return figure


def pictures(run: Run) -> dict[str, tuple[str, Any]]:
    """Return all figures that the run has data for, by name, with their captions."""
    found: dict[str, tuple[str, Any | None]] = {
        "kernels": ("Kernels compared with NumPy, SciPy and PyTorch", kernel_ratios(run)),
        "scaling": ("How time grows with the size", scaling(run)),
        "threads": ("Speed-up by a second thread", threads(run)),
        "levels": ("Instruction sets", levels(run)),
        "training": (
            "The same algorithm in NumPy and PyTorch",
            ratios(run.of_suite("training"), "The same algorithm, whole sweeps and fits"),
        ),
        "prediction": (
            "Prediction",
            ratios(run.of_suite("prediction"), "Prediction, 784-60-10"),
        ),
        "tables": (
            "Small tables",
            ratios(run.of_suite("small tables"), "Five fits on small tables"),
        ),
    }
    curves: dict[str, list[Group]] = {}
    for group in run.of_suite("accuracy"):
        curves.setdefault(group.name.partition(":")[0].partition(",")[0], []).append(group)
    for name, groups in curves.items():
        title = f"Accuracy against time: {name}"
        found[f"accuracy-{name.replace(' ', '-')}"] = (title, accuracy(groups, title))
    for group in run.of_suite("paper"):
        text = group.name[0].upper() + group.name[1:]
        short = re.sub(r"\W+", "-", text.partition(":")[0].lower())
        found[f"paper-{short}"] = (text, dots(group, text))
    for group in run.of_suite("memory"):
        found["memory"] = ("Peak memory", memory(group))
    return {name: (text, figure) for name, (text, figure) in found.items() if figure}
