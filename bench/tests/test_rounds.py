"""Rounds call every contender, as often as time allows; a wrong answer is not timed."""

import dataclasses

import numpy as np
import pytest

from ..cases.products import gram_case
from ..contenders import OURS
from ..measure import rounds
from ..measure.peaks import Peaks
from ..measure.rounds import interleaved, measure, rounds_within_budget


def test_contenders_are_called_in_turn() -> None:
    order: list[str] = []
    calls = {name: lambda name=name: order.append(name) for name in "ab"}
    samples = interleaved(calls, 3)
    assert order == list("ababab")
    assert [len(times) for times in samples.values()] == [3, 3]


def test_rounds_fit_in_the_budget_but_some_are_always_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "BUDGET_SECONDS", 2.0)
    monkeypatch.setattr(rounds, "FEWEST_ROUNDS", 5)
    assert rounds_within_budget(0.01, most=15) == 15
    assert rounds_within_budget(0.2, most=15) == 10
    assert rounds_within_budget(3.0, most=15) == 5
    assert rounds_within_budget(3.0, most=3) == 3


def test_a_wrong_answer_is_not_timed() -> None:
    wrong = dataclasses.replace(
        gram_case("float32", 20, 4), ours=lambda A, n_threads: np.zeros((4, 4))
    )
    with pytest.raises(AssertionError, match="ours is off by"):
        measure(wrong, 1, 2, Peaks())


def test_every_contender_has_one_sample_per_round() -> None:
    row = measure(gram_case("uint8", 20, 4), 1, 3, Peaks())
    assert {len(times) for times in row.samples.values()} == {3}
    assert row.errors[OURS] == 0
    assert row.ratio(OURS) == 1
