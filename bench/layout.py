"""How the benchmarks write times and tables."""

from collections.abc import Sequence


def times(ratio: float) -> str:
    """Write a ratio with three digits, all that stand before the point."""
    return f"{ratio:.{2 if ratio < 10 else 1 if ratio < 100 else 0}f}x"


def shown(value: float) -> str:
    """Write a time with three digits, or all seconds, and a unit."""
    if value >= 1000:
        return f"{value:.0f} s"
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
