"""Rounds call every contender, as often as time allows; a wrong answer is not timed."""

import dataclasses
import time

import numpy as np
import pytest

from ..cases.layers import linear_case
from ..cases.products import cross_case, gram_case, row_ranges
from ..contenders import NUMKONG, NUMKONG_TRANSPOSING, OURS
from ..measure import rounds
from ..measure.libraries import limited
from ..measure.peaks import Peaks
from ..measure.rounds import interleaved, measure, rounds_within_budget, sample


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
    assert {len(times) for times in row.cold.values()} == {3}
    assert row.errors[OURS] == 0
    assert row.ratio(OURS) == row.cold_ratio(OURS) == 1
    assert row.noise(OURS) == 0
    assert OURS not in row.rivals


def test_the_first_call_after_a_pause_is_not_part_of_the_burst() -> None:
    left = iter([0.02, *[0.0] * 4])
    first, in_burst = sample(lambda: time.sleep(next(left)), 4)
    assert first >= 0.02 > in_burst
    assert next(left, None) is None


def test_without_a_burst_the_first_call_is_both() -> None:
    calls: list[int] = []
    first, in_burst = sample(lambda: calls.append(1), 0)
    assert first == in_burst
    assert len(calls) == 1


def test_only_the_contenders_asked_for_are_measured() -> None:
    row = measure(gram_case("uint8", 20, 4), 1, 1, Peaks(), [OURS, "numpy"], bursts=False)
    assert list(row.samples) == [OURS, "numpy"]
    assert row.samples == row.cold
    assert row.rivals == ["numpy"]


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_numkong_gives_the_same_gram_matrix_of_bytes(n_threads: int) -> None:
    pytest.importorskip("numkong")
    case = gram_case("uint8", 100, 17)
    with limited(n_threads):
        for name in (NUMKONG, NUMKONG_TRANSPOSING):
            (call,) = case.forms(name, n_threads)
            assert case.checked_error(name, call()) == 0
    assert row_ranges(17, n_threads)[-1][-1] == 17


def test_numkong_does_not_run_where_its_sums_can_overflow() -> None:
    assert NUMKONG in gram_case("uint8", 66_051, 4).contenders
    assert NUMKONG not in gram_case("uint8", 66_052, 4).contenders
    assert NUMKONG not in gram_case("float32", 100, 4).contenders


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_every_form_of_a_layer_and_a_cross_product_gives_the_answer(
    dtype: str, outputs: int
) -> None:
    for case in (
        linear_case(dtype, "relu", 40, outputs, cols=9, of_images=False),
        cross_case(dtype, 40, outputs, cols=9, of_images=False),
    ):
        for name in case.installed_contenders:
            for form in case.forms(name, 1):
                case.checked_error(name, form())
