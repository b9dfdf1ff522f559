"""The sections of the report: headline, environment, the paper's claim, and one table per suite."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..contenders import ADAM, ALGORITHM_2, COMPILED_ADAM, NUMKONG, OURS, TABLE_MLP
from .results import NOISY, UNSURE, Group, Result, Run, moved
from .text import shown, summary, times, times_floors

HEADLINES = (
    (
        r"^fashion 100-70 softmax: to Adam's best$",
        "less time than {rival} to Adam's best test accuracy in 20 epochs: Fashion-MNIST, 100-70 softmax",
    ),
    (
        r"^mnist 100-70 relu: to Adam's best$",
        "less time than {rival} to Adam's best test accuracy in 20 epochs: MNIST, 100-70 ReLU",
    ),
    (
        r"^gram uint8 \d+ x 784, 2 thread\(s\)$",
        "as fast as {rival}: the exact Gram matrix of bytes",
    ),
    (
        r"^prediction float32 one image, 1 thread\(s\)$",
        "as fast as {rival}: prediction of one image from Python, 784-60-10",
    ),
    (
        r"^breast_cancer, five fits$",
        "as fast as {rival}: fits on breast_cancer, both at their defaults",
    ),
)
"""At most five: the group, and what the ratio to its strongest rival means."""

RIVALS = {
    "numpy": "NumPy",
    "scipy": "SciPy",
    "torch": "PyTorch",
    NUMKONG: "NumKong on bytes transposed in advance",
    ADAM: "tuned Adam",
    COMPILED_ADAM: "tuned Adam, compiled",
    TABLE_MLP: "scikit-learn's MLPClassifier",
}
"""Contenders as a headline names them, where that is not by the name of their column."""

SUITES = {
    "kernels": (
        "Kernels",
        "Best / median (spread), error relative to the largest value in float64 (solve: the backward error), and for "
        "ours the part of the measured peak. For bytes, the competitors get a float32 copy made in advance. NumKong "
        "takes bytes: transposed in advance, as it needs them, or transposed in the call.",
    ),
    "scaling": (
        "Scaling",
        "As for the kernels. The laws in the picture go through our largest size.",
    ),
    "after a pause": (
        "After a pause",
        "The first call after a pause of 40 ms, when the threads of every library sleep. Ratios are of the medians: "
        "the best time would hide threads that wake late.",
    ),
    "random shapes": (
        "Random shapes",
        "Shapes drawn at random, log-uniform: rows from 32 to 200,000, columns and unknowns from 4 to 1,500, right "
        "sides from 1 to 300. The ratio of a shape is that to its strongest rival of NumPy, SciPy and PyTorch; cold: "
        "of the median first calls after a pause of 40 ms.",
    ),
    "loaded": (
        "On a loaded machine",
        "Beside busy loops, and several processes at once; medians.",
    ),
    "levels": (
        "Instruction sets",
        "Every library is limited to the level, where it allows that, to show what an older CPU would give.",
    ),
    "training": (
        "The same algorithm, elsewhere",
        "One sweep, and a whole fit by Algorithm 2, compared with the same steps in NumPy (with SciPy's Cholesky) and "
        "in PyTorch. The error is that of the weights, relative to float64.",
    ),
    "paper": (
        "The paper's tables",
        "Gradient methods run at the paper's settings, one row per update. Slices are timed and extrapolated, and "
        "every such row says so.",
    ),
    "accuracy": (
        "Accuracy against time",
        "Each contender at its most accurate point. The pictures show every point that is more accurate than all "
        "faster points of the same contender.",
    ),
    "time to accuracy": (
        "Time to accuracy",
        "Seconds from the arrays in memory to a network of that test accuracy. Tuned means the best of the grids in "
        "`bench/baselines/mini_batch.py`, chosen by test accuracy. Ours run with their defaults; their accuracies are "
        "means over seeds.",
    ),
    "small tables": (
        "Small tables",
        "Estimators at their defaults on standardized columns. Scores are accuracies or R² over five folds.",
    ),
    "prediction": (
        "Prediction",
        "A 784-60-10 network, ReLU and softmax; cells as for the kernels. Bare C++ is one row without Python, also as "
        "a multiple of its multiply-adds at the measured peak and of reading the weights once from the cache that "
        "holds them. Zeros of images are skipped, which can bring it below 1x; a dense row has none.",
    ),
    "memory": (
        "Memory",
        "Peak resident memory of a training in a process of its own: in all, and above the memory with the images "
        "loaded as bytes. Ratios are of the latter.",
    ),
    "GPU": ("GPU", "As for the kernels, on the CUDA device."),
}
"""Title and explanation of each table, in the order of the page."""

WIDE = {"kernels", "scaling", "after a pause", "levels", "training", "prediction", "GPU"}
"""Suites with a line per group and a column per contender; the others have a line per contender."""
LOST = "🔴"
LEGEND = (
    f"Measured interleaved in one run; ratio = competitor time / our time, of the best times. {LOST} marks where we "
    f"lose, {UNSURE} a ratio that is uncertain by more than {NOISY:.0%}; the note under the table says why. Spread: "
    "the distance between the quartiles, relative to the median."
)


@dataclass
class Section:
    """A heading, text, a table and pictures; cells are Markdown."""

    title: str
    text: str = ""
    names: list[str] = field(default_factory=list)
    lines: list[list[str]] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def slug(text: str) -> str:
    return re.sub(r"\W+", "-", text.lower()).strip("-")


def percent(part: float | None) -> str:
    return "" if part is None else f"{part:.0%}"


def doubts(run: Run, again: Run | None) -> dict[tuple[str, str], str]:
    """Return the reason for each uncertain ratio: a second run gives another or, without one, its rounds spread."""
    found = {}
    for group in run.groups.values():
        second = again.groups.get(group.name) if again else None
        for name in group.compared:
            if second and name in second.compared:
                if moved(group, second, name):
                    found[group.name, name] = f"a second run gave {ratio_text(second, name)}"
            elif (group.noise(name) or 0) > NOISY:
                found[group.name, name] = f"the rounds spread by {group.noise(name):.0%}"
    return found


def ratio_text(group: Group, name: str) -> str:
    ratio = group.ratio(name)
    return "never" if ratio is None else times(ratio)


def verdict(group: Group, name: str, doubted: dict[tuple[str, str], str]) -> str:
    """Return a ratio with its marks; a contender that never reached the accuracy has none."""
    if name not in group.compared:
        return ""
    ratio = group.ratio(name)
    if ratio is None:
        word = "never" if group.results[OURS].reached else "ours never"
        return f"{LOST} {word}" if group.lost(name) else word
    marks = f"{LOST} " * group.lost(name) + f"{UNSURE} " * ((group.name, name) in doubted)
    return f"{marks}**{times(ratio)}**"


def seconds(result: Result) -> str:
    """Return best, median and spread."""
    text = f"{shown(result.best)} / {shown(result.median)}"
    return text if result.spread is None else f"{text} ({percent(result.spread)})"


def wide_cell(group: Group, name: str, doubted: dict[tuple[str, str], str]) -> str:
    if name not in group.results:
        return ""
    result = group.results[name]
    parts = [f"{verdict(group, name, doubted)} {seconds(result)}".strip()]
    if "error" in result.info:
        parts.append(f"{result.info['error']:.0e}")
    if "part_of_peak" in result.info:
        parts.append(f"{result.info['part_of_peak']:.0%} of peak")
    parts += times_floors(result.best, result.info.get("floors", {}))
    return ", ".join(parts)


def wide_table(
    section: Section, groups: Sequence[Group], doubted: dict[tuple[str, str], str]
) -> None:
    contenders = list(dict.fromkeys(name for group in groups for name in group.results))
    section.names = ["", *contenders]
    section.lines = [
        [anchored(group.name), *(wide_cell(group, name, doubted) for name in contenders)]
        for group in groups
    ]


def long_table(
    section: Section, groups: Sequence[Group], doubted: dict[tuple[str, str], str]
) -> None:
    section.names = ["", "contender", "ratio", "best / median (spread)", "what it gave"]
    for group in groups:
        for place, (name, result) in enumerate(group.results.items()):
            section.lines.append(
                [
                    "" if place else anchored(group.name),
                    name,
                    verdict(group, name, doubted),
                    seconds(result),
                    ", ".join(details(result)),
                ]
            )


def summary_table(
    section: Section, groups: Sequence[Group], doubted: dict[tuple[str, str], str]
) -> None:
    """Fill a line per kernel, hot and cold."""
    kinds: dict[tuple[str, bool], list[tuple[Group, str]]] = {}
    for group in groups:
        info = group.results[OURS].info
        if rival := group.strongest:
            kind = info["kernel"], info.get("cold", False)
            kinds.setdefault(kind, []).append((group, rival))
    section.names = ["", "shapes", "uncertain", "geometric mean", "won", "worst"]
    section.lines = [
        [
            f"{kernel}, {'cold' if cold else 'hot'}",
            str(len(of_kind)),
            str(sum((group.name, name) in doubted for group, name in of_kind)),
            *summary(
                [(group.ratio(name) or 0, f"{name}: {group.name}") for group, name in of_kind]
            ),
        ]
        for (kernel, cold), of_kind in kinds.items()
    ]


def details(result: Result) -> Iterator[str]:
    """Yield what a row tells besides its seconds."""
    info = result.info
    if "accuracy" in info:
        yield f"{info['accuracy']:.2%}" + (f" of {info['target']:.2%}" if "target" in info else "")
    if "score" in info:
        yield f"score {info['score']:.4f}"
    if "more_bytes" in info:
        yield f"{info['more_bytes'] / 2**20:.0f} MiB more, {info['peak_bytes'] / 2**20:.0f} MiB in all"
    if "published_seconds" in info:
        yield f"in the paper {info['published_seconds']:g} s"
    yield from (str(info[name]) for name in ("what", "note") if name in info)


def anchored(name: str) -> str:
    return f'<a id="{slug(name)}"></a>{name}'


def headline(run: Run) -> Section:
    section = Section("In short", LEGEND)
    for pattern, meaning in HEADLINES:
        for group in run.groups.values():
            if re.search(pattern, group.name) and (rival := group.strongest):
                text = meaning.format(rival=RIVALS.get(rival, rival))
                section.notes.append(
                    f"[**{ratio_text(group, rival)}**](#{slug(group.name)}) {text}"
                )
    return section


def environment(run: Run) -> Section:
    section = Section("Where it ran", names=["", ""], lines=[["date", run.when]])
    section.lines += [[name, value] for name, value in run.environment.items()]
    return section


def not_measured(run: Run) -> Section | None:
    """Return what was skipped, and why."""
    if not run.skipped:
        return None
    notes = [f"{why}: {count} row{'s' * (count > 1)}" for why, count in run.skipped.items()]
    return Section(
        "Not measured", "Rows that the run skipped, by file, and the reason.", notes=notes
    )


def claim(run: Run) -> Section | None:
    """Return how many times faster Algorithm 2 is than each gradient method, the question of the paper."""
    papers = [group for group in run.of_suite("paper") if "toy" not in group.name]
    tuned = [g for g in run.of_suite("time to accuracy") if g.name.endswith("of Algorithm 2")]
    methods = ("Adam", "NAG", "SGD", "AdaGrad")
    if not papers:
        return None

    def cell(group: Group, contender: str, base: str) -> str:
        ratio = group.ratio(contender, base)
        return "never" if ratio is None else f"{LOST} " * (ratio < 1) + times(ratio)

    section = Section(
        "The paper's claim",
        "How many times faster Algorithm 2 is than each gradient method, on Fashion-MNIST with 100-70 softmax neurons. "
        "The paper's own Table II gives about 19 times, for an iteration against an epoch. Never: not within the "
        "epochs that were run.",
        ["", *(group.name for group in papers), *(f"{group.name}, tuned" for group in tuned)],
    )
    for method in methods:
        of_papers = [cell(group, method, OURS) for group in papers]
        of_tuned = [cell(group, f"{method}, tuned", ALGORITHM_2) for group in tuned]
        section.lines.append([method, *of_papers, *of_tuned])
    return section


def of_suite(
    run: Run, suite: str, drawn: Sequence[str], doubted: dict[tuple[str, str], str]
) -> Section:
    title, text = SUITES[suite]
    groups = run.of_suite(suite)
    section = Section(title, text, pictures=[name for name in drawn if shows(name, suite)])
    if suite == "random shapes":
        summary_table(section, groups, doubted)
        return section
    (wide_table if suite in WIDE else long_table)(section, groups, doubted)
    reasons = [(key, why) for key, why in doubted.items() if key[0] in {g.name for g in groups}]
    section.notes = [f"{UNSURE} {group}, {name}: {why}" for (group, name), why in reasons]
    return section


def shows(picture: str, suite: str) -> bool:
    """Return whether a picture belongs to a suite."""
    if suite == "kernels" and picture == "threads":
        return True
    return picture.partition("-")[0] == {"small tables": "tables"}.get(suite, suite)


def sections(run: Run, again: Run | None, drawn: Sequence[str]) -> list[Section]:
    """Return all sections of the page."""
    doubted = doubts(run, again)
    present = [suite for suite in SUITES if run.of_suite(suite)]
    first = [headline(run), environment(run)]
    paper, skipped = claim(run), not_measured(run)
    return [
        *first,
        *([paper] if paper else []),
        *(of_suite(run, suite, drawn, doubted) for suite in present),
        *([skipped] if skipped else []),
    ]
