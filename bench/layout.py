"""How the benchmarks write times and tables."""

from collections.abc import Sequence


def shown(value: float) -> str:
    """Write a time with three digits and a unit."""
    scale, unit = next(
        (pair for pair in ((1.0, "s"), (1e-3, "ms")) if value >= pair[0]), (1e-6, "µs")
    )
    return f"{value / scale:#.3g}".rstrip(".") + f" {unit}"


def markdown(names: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Lay lines out as a Markdown table whose columns are aligned."""
    widths = [max(map(len, column)) for column in zip(names, *lines, strict=True)]
    rule = ["-" * width for width in widths]
    return "\n".join(
        "| "
        + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True))
        + " |"
        for line in (names, rule, *lines)
    )
