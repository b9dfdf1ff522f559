"""Shapes drawn at random: the same for a seed, within their bounds, and summed up without favour."""

import itertools
import math
import re

import numpy as np
import pytest

from .. import random_shapes
from ..cases import shapes
from ..cases.shapes import DTYPES, drawn_cases, log_uniform
from ..report.text import summary


def first_names(kernel: str, dtype: str, seed: int) -> list[str]:
    return [case.name for case in itertools.islice(drawn_cases(kernel, dtype, seed), 20)]


@pytest.mark.parametrize("kernel", DTYPES)
def test_a_seed_gives_the_same_shapes_and_another_seed_gives_others(kernel: str) -> None:
    dtype = DTYPES[kernel][0]
    assert first_names(kernel, dtype, 1) == first_names(kernel, dtype, 1)
    assert first_names(kernel, dtype, 1) != first_names(kernel, dtype, 2)


def test_every_power_of_two_between_the_bounds_is_as_likely() -> None:
    random = np.random.default_rng(0)
    drawn = [log_uniform(random, (32, 1023)) for _ in range(5000)]
    assert min(drawn) >= 32
    assert max(drawn) <= 1023
    counts = np.bincount([value.bit_length() for value in drawn])[6:]
    assert counts.min() > 0.85 * counts.max()


def test_no_draw_is_beyond_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "ROWS", (32, 200_000))
    monkeypatch.setattr(shapes, "COLS", (4, 1500))
    for case in itertools.islice(drawn_cases("gram", "float32", 0), 300):
        rows, cols = map(int, re.findall(r"\d+", case.size))
        assert rows * cols <= shapes.MOST_VALUES
        assert case.operations == rows * cols**2 <= shapes.MOST_OPERATIONS


def test_the_summary_has_the_geometric_mean_the_share_won_and_the_worst() -> None:
    ratios = [(ratio, f"shape {ratio}") for ratio in (4.0, 0.25, 1.0, 8.0)]
    mean = math.prod(ratio for ratio, _ in ratios) ** 0.25
    assert summary(ratios) == [f"{mean:.2f}x", "75%", "0.25x shape 0.25"]


def test_the_seed_every_draw_and_every_kernel_are_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shapes, "ROWS", (32, 100))
    monkeypatch.setattr(shapes, "COLS", (4, 20))
    random_shapes.main(["--seed", "7", "--draws", "6", "--threads", "1", "--rounds", "1"])
    printed = capsys.readouterr().out
    assert re.search(r"^seed +7$", printed, re.M)
    assert len(re.findall(r"hot .* of peak; cold ", printed)) == 6
    for name in ("gram uint8", "gram float64", "linear float32", "cross float32", "solve float64"):
        assert re.search(rf"^\| {name} +\| 1 ", printed, re.M)
    random_shapes.main(
        [
            "--seed",
            "7",
            "--draws",
            "2",
            "--kernels",
            "gram",
            "--dtypes",
            "uint8",
            "--rounds",
            "1",
            "--cold",
        ]
    )
    assert "hot" not in capsys.readouterr().out.partition("seed 7")[2]
