"""The page as Markdown with PNG files, and as one HTML file that needs no other."""

import base64
import html
import io
import re
from collections.abc import Sequence
from pathlib import Path

from .page import LOST, Section, sections
from .plots import pictures
from .results import Run
from .text import markdown


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
    """Return the Markdown of a cell or note as HTML. It knows only what page.py writes."""
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
    """Write benchmarks.html, benchmarks.md and the pictures of the latter into a folder."""
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
