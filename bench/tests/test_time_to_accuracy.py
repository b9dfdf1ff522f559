"""The time to an accuracy: both sides learn, and the tables say what was measured."""

import csv
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .. import time_to_accuracy
from ..baselines.mini_batch import Config, Run
from ..cases import networks
from ..cases.networks import SETTINGS
from ..measure.libraries import INSTALLED
from ..time_to_accuracy import Fit, Result, main, measure, report, write_csv

SETTING = SETTINGS[-1]


def fits(accuracies: dict[float, list[float]]) -> list[Fit]:
    """Return fits whose seconds are their passes, and a tenth more for every seed."""
    return [
        Fit(passes, seed, accuracy, passes * (1 + seed / 10))
        for passes, of_seeds in accuracies.items()
        for seed, accuracy in enumerate(of_seeds)
    ]


def lines(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def without_data(
    monkeypatch: pytest.MonkeyPatch, order: list[str], accuracy: Callable[[], float]
) -> None:
    """Replace both sides by functions that only note the order of the calls."""

    def our_fit(_setting: object, _data: object, passes: float, seed: int) -> Fit:
        order.append(f"ours {seed}")
        return Fit(passes, seed, accuracy(), 1.0)

    def gradient_run(_setting: object, _data: object, config: Config, _epochs: int) -> Run:
        order.append(f"Adam {config.batch}")
        return Run(config, [0.5], [1.0])

    monkeypatch.setattr(time_to_accuracy, "load", lambda name: None)
    monkeypatch.setattr(time_to_accuracy, "as_tensors", lambda data: None)
    monkeypatch.setattr(time_to_accuracy, "our_fit", our_fit)
    monkeypatch.setattr(time_to_accuracy, "gradient_run", gradient_run)


@pytest.fixture
def result() -> Result:
    return Result(
        SETTING,
        fits=fits({0.5: [0.6, 0.7], 1: [0.8, 0.9], 2: [0.85, 0.95]}),
        again=[Fit(0.5, 0, 0.6, 0.7), Fit(1, 0, 0.8, 1.4), Fit(2, 0, 0.85, 2.8)],
        runs=[
            Run(Config(128, 1e-3), accuracies=[0.5, 0.86, 0.7], seconds=[4.0, 6.0, 5.0]),
            Run(Config(256, 1e-2), accuracies=[0.66, 0.67, 0.68], seconds=[2.0, 2.0, 1.5]),
            Run(Config(256, 1e-3), accuracies=[0.61, 0.62, 0.63], seconds=[3.0, 1.0, 9.0]),
        ],
    )


@pytest.mark.usefixtures("fashion")
@pytest.mark.skipif(not INSTALLED["torch"], reason="torch is not installed")
def test_both_sides_learn_and_everything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(networks, "ROWS", 6000)
    files = ["--csv", str(tmp_path / "a.csv"), "--json", str(tmp_path / "a.json")]
    few = ["--epochs", "1", "--seeds", "1", "--passes", "1", "2", "--grid", "small"]
    main(["--setting", SETTING.name, *few, *files])
    printed = capsys.readouterr().out
    assert "commit" in printed
    assert f"## {SETTING.name}\n" in printed
    rows = lines(tmp_path / "a.csv")
    questions = ["best in 1 epoch", "best after 1", "1 pass", "2 passes"]
    assert [row["question"] for row in rows] == questions
    (measured,) = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["results"]
    (run,) = measured["runs"]
    assert len(measured["fits"]) == len(measured["again"]) == 2
    assert len(run["seconds"]) == 1
    guessing = 0.1
    for accuracy in (*run["accuracies"], *(fit["accuracy"] for fit in measured["fits"])):
        assert accuracy > 3 * guessing


def test_adams_best_is_that_of_any_epoch_with_all_seconds_up_to_it(result: Result) -> None:
    best, *_ = result.adam_then_ours()
    assert best.question == "best in 3 epochs"
    assert best.adam == (128, 1e-3, 2, 0.86, 2 * 4.0, 4.0 + 6.0)


def test_adam_after_some_epochs_is_the_best_of_the_grid_after_just_those(result: Result) -> None:
    _, after_1, after_2 = result.adam_then_ours()
    assert after_1.adam == (256, 1e-2, 1, 0.66, 1.0, 2.0)
    assert after_2.adam[:4] == (128, 1e-3, 2, 0.86)


def test_ours_is_the_first_mean_over_the_seeds_that_is_as_accurate(result: Result) -> None:
    best, after_1, _ = result.adam_then_ours()
    assert best.ours.passes == 2
    assert best.ours.accuracy == pytest.approx((0.85 + 0.95) / 2)
    assert after_1.ours.passes == 1
    assert after_1.ours.accuracy == pytest.approx((0.8 + 0.9) / 2)
    assert after_1.ours.deviation == pytest.approx(0.1 / 2**0.5)


def test_ratios_are_of_the_best_times_and_of_the_usual_ones(result: Result) -> None:
    _, after_1, _ = result.adam_then_ours()
    of_bests, ratio = after_1.ratios
    assert of_bests == pytest.approx(1.0 / min(1.0, 1.1, 1.4))
    assert ratio == pytest.approx(2.0 / 1.1)


def test_the_curve_names_the_run_of_adam_that_needs_the_least_time_to_get_there(
    result: Result,
) -> None:
    half, one, two = result.ours_then_adam()
    assert half.adam[:3] == (256, 1e-2, 1)
    assert one.adam[:3] == (128, 1e-3, 2)
    assert (half.reached, one.reached, two.reached) == (True, True, False)


def test_who_never_gets_there_is_not_hidden(result: Result, tmp_path: Path) -> None:
    result.runs[0].accuracies[1] = 0.99
    best, *_ = result.adam_then_ours()
    assert not best.reached
    assert best.ratios == (None, None)
    assert "never; at most: 2 passes" in report(result)
    write_csv(tmp_path / "a.csv", [result])
    row, *_ = lines(tmp_path / "a.csv")
    assert (row["reached"], row["ratio"], row["ratio_of_bests"]) == ("False", "", "")
    assert row["adam_accuracy"] == "0.99"


def test_the_report_says_where_adam_may_do_better_beyond_what_was_tried(result: Result) -> None:
    assert result.edges() == ["the smallest batch", "the smallest rate"]
    result.runs[1].accuracies[2] = 0.99
    late = Result(SETTING, result.fits, result.again, result.runs)
    assert late.edges() == ["its last epoch", "the largest batch", "the largest rate"]
    assert "Adam's best is at its last epoch" in report(late)
    middle = Run(Config(200, 3e-3), accuracies=[0.5, 1.0, 0.6], seconds=[1.0, 1.0, 1.0])
    inside = Result(SETTING, result.fits, result.again, [*result.runs, middle])
    assert inside.edges() == []
    assert "larger grid" not in report(inside)


def test_our_turns_come_before_between_and_after_the_runs_of_adam(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []
    without_data(monkeypatch, order, lambda: 0.5)
    grid = [Config(batch, 1e-3) for batch in (1, 2, 3, 4)]
    measure(SETTING, [1], grid, epochs=1, seeds=2, threads=1)
    _warm_up, *order = order
    assert order == ["ours 0", "Adam 1", "Adam 3", "ours 1", "Adam 2", "Adam 4", "ours 0"]


def test_a_seed_that_gives_two_accuracies_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    without_data(monkeypatch, [], itertools.count().__next__)
    with pytest.raises(AssertionError, match="the same seed gave the accuracies"):
        measure(SETTING, [1], [], epochs=1, seeds=1, threads=1)
