"""A run of the suite as tables and pictures: one HTML page that needs no other file, a Markdown twin with PNG files.

    python -m bench.report out.json [--again second.json] [--output report]

A second run of the same suite marks the ratios that it does not confirm.
"""

from __future__ import annotations

import argparse
import base64
import html
import io
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # as `python -m bench.report`, too

from layout import beside_floors, markdown, shown, times
from plots import pictures
from results import NOISY, OURS, Group, Result, Run, load, moved

ADAM, ALGORITHM_2 = "Adam, tuned", "ours, Algorithm 2"
HEADLINES = (
    (
        r"^fashion 100-70 softmax: to Adam's best$",
        ADAM,
        "to the best test accuracy of tuned Adam in 20 epochs, Fashion-MNIST, 100-70 softmax",
    ),
    (
        r"^mnist 100-70 relu: to Adam's best$",
        ADAM,
        "to the best test accuracy of tuned Adam in 20 epochs, MNIST, 100-70 ReLU",
    ),
    (
        r"^gram uint8 \d+ x 784, 2 thread\(s\)$",
        "torch",
        "the Gram matrix of bytes, exact, beside PyTorch on a ready float32 copy",
    ),
    (
        r"^prediction float32 one image, 1 thread\(s\)$",
        "torch",
        "prediction of one image from Python, 784-60-10, beside PyTorch",
    ),
    (
        r"^breast_cancer, five fits$",
        "MLPClassifier or MLPRegressor",
        "fits on breast_cancer beside scikit-learn's MLPClassifier, both at their defaults",
    ),
)
"""At most five: group, contender, and what the ratio is of."""

SUITES = {
    "kernels": (
        "Kernels",
        "Best / median (spread), error against float64 as a part of the largest value (solve: the backward error), "
        "and of ours the part of the measured peak of the arithmetic. Competitors of bytes get a ready float32 copy.",
    ),
    "scaling": ("Scaling", "As above; the laws in the picture go through our largest size."),
    "levels": (
        "Instruction sets",
        "Everyone is kept to the level, as far as the libraries can be: an older CPU is what is asked for.",
    ),
    "training": (
        "The same algorithm, elsewhere",
        "One sweep, and a whole fit of Algorithm 2, beside the same steps in NumPy with SciPy's Cholesky and in "
        "PyTorch; the error is that of the weights against float64.",
    ),
    "paper": (
        "The paper's tables",
        "Gradient methods at the paper's settings, one row for an update: slices are timed and multiplied, which each "
        "row says.",
    ),
    "accuracy": (
        "Accuracy against time",
        "Each contender at its most accurate; the pictures have all points that no faster one of the same contender "
        "equals.",
    ),
    "time to accuracy": (
        "Time to accuracy",
        "From the arrays in memory to a network of that test accuracy. Tuned: the best of the grids in "
        "`bench/baselines/mini_batch.py`, chosen by test accuracy; ours run with their defaults, accuracies are means "
        "over seeds.",
    ),
    "small tables": (
        "Small tables",
        "Estimators at their defaults, columns standardized; scores are accuracies or R² over five folds.",
    ),
    "prediction": (
        "Prediction",
        "784-60-10, ReLU and softmax; as above. Bare C++ is one row without Python, and how many times as long that "
        "takes as its multiply-adds at the measured peak, and as reading the weights once from the cache that holds "
        "them. Zeros of images are left out, which can bring it below 1x; a dense row has none.",
    ),
    "memory": (
        "Memory",
        "Peak resident memory of a training in a process of its own: in all, and beyond what it was with the images "
        "loaded as bytes. Ratios are of the latter.",
    ),
    "GPU": ("GPU", "As above, on the CUDA device."),
}
"""Title, and what the table says, in the order of the page."""

WIDE = {"kernels", "scaling", "levels", "training", "prediction", "GPU"}
"""A line for each group, a column for each contender; the other suites have a line for each contender."""
LOST, UNSURE = "🔴", "≈"
LEGEND = (
    f"Ratios are of the best times, competitor over ours: above 1 we are faster. {LOST} marks where we lose, "
    f"{UNSURE} a ratio that is too noisy to be given to {NOISY:.0%}: the note under the table says why. Spread: "
    "between the quartiles, as a part of the median."
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
    """Say of each ratio that cannot be trusted why: a second run gives another or, without one, its rounds spread."""
    found = {}
    for group in run.groups.values():
        second = again.groups.get(group.name) if again else None
        for name in group.compared:
            if second and name in second.compared:
                if moved(group, second, name):
                    found[group.name, name] = f"a second run gave {times_as_fast(second, name)}"
            elif (group.noise(name) or 0) > NOISY:
                found[group.name, name] = f"the rounds spread by {group.noise(name):.0%}"
    return found


def times_as_fast(group: Group, name: str) -> str:
    ratio = group.ratio(name)
    return "never" if ratio is None else times(ratio)


def verdict(group: Group, name: str, doubted: dict[tuple[str, str], str]) -> str:
    """Write a ratio with its marks; who never got there has none."""
    if name not in group.compared:
        return ""
    ratio = group.ratio(name)
    if ratio is None:
        word = "never" if group.results[OURS].reached else "ours never"
        return f"{LOST} {word}" if group.lost(name) else word
    marks = f"{LOST} " * group.lost(name) + f"{UNSURE} " * ((group.name, name) in doubted)
    return f"{marks}**{times(ratio)}**"


def seconds(result: Result) -> str:
    """Write best, median and spread."""
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
    parts += beside_floors(result.best, result.info.get("floors", {}))
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
                    ", ".join(said(result)),
                ]
            )


def said(result: Result) -> Iterator[str]:
    """Write what a row says beside its seconds."""
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
    for pattern, contender, of_what in HEADLINES:
        for group in run.groups.values():
            ratio = group.ratio(contender)
            if re.search(pattern, group.name) and ratio is not None:
                section.notes.append(f"[**{times(ratio)}**](#{slug(group.name)}) {of_what}")
    return section


def environment(run: Run) -> Section:
    section = Section("Where it ran", names=["", ""], lines=[["date", run.when]])
    section.lines += [[name, value] for name, value in run.environment.items()]
    return section


def not_measured(run: Run) -> Section | None:
    """Say what was skipped, and why."""
    if not run.skipped:
        return None
    notes = [f"{why}: {count} row{'s' * (count > 1)}" for why, count in run.skipped.items()]
    return Section("Not measured", "What the run skipped, by file, and why.", notes=notes)


def claim(run: Run) -> Section | None:
    """Lay out how many times faster Algorithm 2 is than each gradient method, the question of the paper."""
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
        "The paper's own Table II gives about 19 times, an iteration beside an epoch. Never: not in the epochs that "
        "were run.",
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
    (wide_table if suite in WIDE else long_table)(section, groups, doubted)
    reasons = [(key, why) for key, why in doubted.items() if key[0] in {g.name for g in groups}]
    section.notes = [f"{UNSURE} {group}, {name}: {why}" for (group, name), why in reasons]
    return section


def shows(picture: str, suite: str) -> bool:
    """Tell whether a picture belongs to a suite."""
    if suite == "kernels" and picture == "threads":
        return True
    return picture.partition("-")[0] == {"small tables": "tables"}.get(suite, suite)


def sections(run: Run, again: Run | None, drawn: Sequence[str]) -> list[Section]:
    """Put the page together."""
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


# ---- the two forms of the page


def as_markdown(page: Sequence[Section], captions: dict[str, str], folder: str) -> str:
    blocks = ["# Benchmarks"]
    for section in page:
        blocks.append(f"## {section.title}")
        blocks += [section.text] if section.text else []
        blocks += [f"![{captions[name]}]({folder}/{name}.png)" for name in section.pictures]
        blocks += [markdown(section.names, section.lines)] if section.lines else []
        blocks += ["\n".join(f"- {note}" for note in section.notes)] if section.notes else []
    return "\n\n".join(blocks) + "\n"


STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 1200px; padding: 0 1em; color: #222; }
table { border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto; }
td, th { border: 1px solid #ddd; padding: 3px 8px; text-align: left; vertical-align: top; }
tr:nth-child(even) { background: #f7f7f7; }
td.lost { background: #ffe3dd; color: #a11200; }
img { max-width: 100%; }
"""


def inline_html(text: str) -> str:
    """Turn the Markdown of a cell or note into HTML; only what this file writes."""
    anchor = re.match(r'<a id="([\w-]+)"></a>', text)
    escaped = html.escape(text[anchor.end() :] if anchor else text)
    escaped = re.sub(r"\[(.+?)\]\(#([\w-]+)\)", r'<a href="#\2">\1</a>', escaped)
    escaped = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escaped)
    escaped = re.sub(r"`(.+?)`", r"<code>\1</code>", escaped)
    return f'<a id="{anchor[1]}"></a>{escaped}' if anchor else escaped


def html_row(cells: Sequence[str], kind: str) -> str:
    marks = [' class="lost"' if LOST in cell else "" for cell in cells]
    inner = (
        f"<{kind}{mark}>{inline_html(cell)}</{kind}>"
        for cell, mark in zip(cells, marks, strict=True)
    )
    return f"<tr>{''.join(inner)}</tr>"


def as_html(page: Sequence[Section], captions: dict[str, str], images: dict[str, bytes]) -> str:
    body = ["<h1>Benchmarks</h1>"]
    for section in page:
        body.append(f"<h2>{html.escape(section.title)}</h2>")
        body.append(f"<p>{inline_html(section.text)}</p>")
        for name in section.pictures:
            data = base64.b64encode(images[name]).decode()
            alt = html.escape(captions[name])
            body.append(f'<p><img alt="{alt}" src="data:image/png;base64,{data}"></p>')
        if section.lines:
            rows = [
                html_row(section.names, "th"),
                *(html_row(line, "td") for line in section.lines),
            ]
            body.append("<table>" + "\n".join(rows) + "</table>")
        if section.notes:
            items = "".join(f"<li>{inline_html(note)}</li>" for note in section.notes)
            body.append(f"<ul>{items}</ul>")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Benchmarks</title>'
        f"<style>{STYLE}</style></head><body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def write(run: Run, again: Run | None, output: Path) -> None:
    """Write benchmarks.html, benchmarks.md and the pictures of the latter."""
    captions, images = {}, {}
    for name, (caption, figure) in pictures(run).items():
        buffer = io.BytesIO()
        figure.savefig(
            buffer, format="png", dpi=110, bbox_inches="tight", metadata={"Software": None}
        )
        captions[name], images[name] = caption, buffer.getvalue()
    page = sections(run, again, list(images))
    folder = output / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    for name, image in images.items():
        (folder / f"{name}.png").write_bytes(image)
    text = as_markdown(page, captions, folder.name)
    (output / "benchmarks.md").write_text(text, encoding="utf-8")
    (output / "benchmarks.html").write_text(as_html(page, captions, images), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the report of a file."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.report", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("run", type=Path, help="what --benchmark-json wrote")
    parser.add_argument("--again", type=Path, help="a second run, to mark what it does not confirm")
    parser.add_argument("--output", type=Path, default=Path("report"), metavar="FOLDER")
    options = parser.parse_args(arguments)
    try:
        run = load(options.run)
        again = load(options.again) if options.again else None
    except (OSError, ValueError) as error:
        parser.error(str(error))
    write(run, again, options.output)
    print(f"{options.output / 'benchmarks.html'}, {options.output / 'benchmarks.md'}")


if __name__ == "__main__":
    main()
