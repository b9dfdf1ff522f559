"""`bpls-fast train`: its options, what it prints and what it saves."""

import re
from collections.abc import Callable

import pytest

import bpls_fast as bf
from bpls_fast.cli import main
from tests.support.command_line import accuracy, bpls_fast, failure, needs_sklearn
from tests.support.subprocesses import output_of, run_code


@needs_sklearn
def test_train_digits_prints_both_accuracies_the_report_and_the_times() -> None:
    output = output_of(bpls_fast("train", "digits"))
    assert 95 <= accuracy(output, "train") <= 100
    assert 90 <= accuracy(output, "test") <= 100
    assert re.search(r"^refined sweeps: \d+ sweeps$", output, re.MULTILINE)
    assert re.search(r"^sweep +rows +loss$", output, re.MULTILINE)
    assert re.search(r"loaded in [\d.]+ s, trained in [\d.]+ s", output)


@needs_sklearn
def test_train_follows_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "digits", "--hidden", "30,20", "--activation", "sigmoid"]) == 0
    assert "Network([64, 30, 20, 10], activation='sigmoid'" in capsys.readouterr().out
    assert main(["train", "digits", "--max-iter", "2"]) == 0
    assert "refined sweeps: 2 sweeps" in capsys.readouterr().out
    assert main(["train", "digits", "--method", "paper", "--max-iter", "2"]) == 0
    assert "max_iter = 2" in capsys.readouterr().out


def assert_prints_the_report(
    fit: Callable[..., bf.FitReport],
    arguments: dict[str, object],
    options: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Compare the report that `train` prints with that of a fit with these arguments."""
    data = bf.datasets.load("digits")
    net = bf.Network([64, 60, 10], seed=0, input_scale=1 / 16)
    report = fit(net, data.x_train, data.y_train, **arguments)
    assert main(["train", "digits", *options]) == 0
    output = capsys.readouterr().out
    for line in str(report).splitlines()[:-1]:  # the last one has the times
        assert line in output


@needs_sklearn
@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], {}),
        (["--max-iter", "3"], {"max_sweeps": 3}),
        (["--passes", "2.5"], {"max_passes": 2.5}),
        (["--loss", "cross_entropy"], {"loss": "cross_entropy"}),
    ],
)
def test_the_options_of_train_are_the_arguments_of_refined_sweeps(
    options: list[str], arguments: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert_prints_the_report(bf.fit_refined, arguments, options, capsys)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--resolve"], "--resolve is given and --method is refined; expected --method paper"),
        (["--full-sweeps", "2"], "--full-sweeps is given and --method is refined"),
        (["--target", "joint"], "--target is given and --method is refined"),
        (
            ["--method", "paper", "--passes", "2"],
            "--passes is given and --method is paper; expected --method refined",
        ),
    ],
)
def test_options_of_the_other_method_are_refused(
    options: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert expected in failure(capsys, "train", "digits", *options)


@needs_sklearn
@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], {}),
        (["--full-sweeps", "1"], {"full_sweeps": 1}),
        (["--resolve"], {"resolve": True}),
        (["--target", "per_output"], {"target": "per_output"}),
        (
            ["--target", "per_output", "--choose-output", "cyclic"],
            {"target": "per_output", "choose_output": "cyclic"},
        ),
    ],
)
def test_the_options_of_train_are_the_arguments_of_the_papers_algorithm(
    options: list[str], arguments: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert_prints_the_report(bf.fit_classifier, arguments, ["--method", "paper", *options], capsys)


def test_an_output_to_choose_is_refused_where_all_are_taken(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = failure(capsys, "train", "digits", "--method", "paper", "--choose-output", "last")
    assert "expected --target per_output" in told


@needs_sklearn
def test_train_with_a_seed_prints_the_same_accuracies_again_and_quiet_prints_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printed = []
    for seed in ("1", "1", "2", "3", "4"):
        assert main(["train", "digits", "--quiet", "--seed", seed]) == 0
        printed.append(capsys.readouterr().out)
    assert len(printed[0].splitlines()) == 2
    assert printed[0] == printed[1]
    assert len(set(printed)) > 1


def test_train_digits_without_scikit_learn_says_what_to_install() -> None:
    finished = run_code("""
        import runpy, sys

        sys.modules["sklearn"] = None  # any import of it fails as if it were not installed
        sys.argv = ["bpls-fast", "train", "digits"]
        runpy.run_module("bpls_fast", run_name="__main__")
    """)
    assert finished.returncode == 2
    assert len(finished.stderr.strip().splitlines()) == 1, finished.stderr
    assert "scikit-learn" in finished.stderr
    assert "pip install" in finished.stderr
    assert "%" not in finished.stdout
