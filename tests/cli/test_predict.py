"""`bpls-fast predict`: labels, accuracy and outputs, from files of every kind."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.cli import main
from tests.support.command_line import LABELS, ROWS, accuracy, needs_sklearn, write_data

SIGNS = [1, 0, 0, 1]


@pytest.mark.parametrize("name", ["rows.npy", "rows.npz", "rows.csv"])
def test_predict_prints_one_label_for_each_row(
    name: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(model), str(write_data(tmp_path / name, ROWS))]) == 0
    printed = capsys.readouterr()
    assert printed.out.split() == [str(sign) for sign in SIGNS]
    assert printed.err == ""


@pytest.mark.parametrize("name", ["rows.npy", "rows.npz", "rows.csv"])
def test_predict_tells_the_accuracy_apart_from_the_labels_where_they_are_known(
    name: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = str(write_data(tmp_path / name, ROWS, LABELS))
    assert main(["predict", str(model), data]) == 0
    printed = capsys.readouterr()
    assert printed.out.split() == [str(sign) for sign in SIGNS]
    assert printed.err == "accuracy 75.00% of 4 rows\n"


@pytest.mark.parametrize("name", ["labels.npy", "labels.txt"])
def test_predict_writes_the_labels_to_a_file(
    name: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, output = write_data(tmp_path / "rows.npz", ROWS, LABELS), tmp_path / name
    assert main(["predict", str(model), str(data), "--output", str(output)]) == 0
    assert capsys.readouterr().out == "accuracy 75.00% of 4 rows\n"
    written = np.load(output) if output.suffix == ".npy" else np.loadtxt(output, dtype=int)
    assert written.tolist() == SIGNS


def test_predict_reads_a_csv_with_a_header_and_labels_that_are_words(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = bf.Network.load(model)
    net.classes = np.array(["below", "above"])
    net.save(model)
    data = tmp_path / "rows.csv"
    data.write_text("a,b,side\n1,2,above\n\n-1,-2,below\n")
    assert main(["predict", str(model), str(data)]) == 0
    printed = capsys.readouterr()
    assert printed.out.split() == ["above", "below"]
    assert "100.00%" in printed.err


def test_predict_prints_the_outputs_of_a_network_without_classes(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = bf.Network.load(model)
    net.classes = None
    net.save(model)
    assert main(["predict", str(model), str(write_data(tmp_path / "rows.csv", ROWS))]) == 0
    printed = [
        [float(value) for value in line.split(",")] for line in capsys.readouterr().out.split()
    ]
    assert np.array_equal(printed, net.forward(ROWS))


@needs_sklearn
def test_a_saved_network_has_the_test_accuracy_that_train_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, labels = str(tmp_path / "digits.npz"), tmp_path / "labels.txt"
    assert main(["train", "digits", "--save", model]) == 0
    trained = capsys.readouterr().out
    assert f"saved to {model}" in trained
    assert main(["predict", model, "digits", "--output", str(labels)]) == 0
    assert accuracy(capsys.readouterr().out, "accuracy") == accuracy(trained, "test")
    assert len(labels.read_text().splitlines()) == len(bf.datasets.load("digits").y_test)


@needs_sklearn
@pytest.mark.parametrize("data", ["digits", "labels.npz"])
@pytest.mark.parametrize(
    ("classes", "told"),
    [
        (None, ""),
        (["even", "odd"], "such as 'even'"),
        ([False, True], "such as False"),
        (np.array(["2020-01-01", "2020-01-02"], "datetime64[D]"), "no accuracy is told"),
    ],
)
def test_no_accuracy_is_told_where_no_class_can_be_a_label(
    data: str,
    classes: list[object] | None,
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    digits = bf.datasets.load("digits")
    if data != "digits":
        data = str(write_data(tmp_path / data, digits.x_test, digits.y_test))
    net = bf.Network([64, 1 if classes is None else 2], output_activation="identity", seed=0)
    net.classes = None if classes is None else np.asarray(classes)
    net.save(tmp_path / "other.npz")
    assert main(["predict", str(tmp_path / "other.npz"), data]) == 0
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == len(digits.y_test)
    assert "%" not in printed.err
    assert told in printed.err
    assert printed.err == "" or classes is not None


@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        ([False, True], LABELS),
        ([False, True], LABELS.astype(bool)),
        ([0, 1], LABELS.astype(bool)),
        ([0.0, 1.0], LABELS),
        ([0, 1], LABELS.astype(str)),
        (["0", "1"], LABELS.astype(str)),
    ],
)
def test_labels_of_a_type_that_can_match_the_classes_give_an_accuracy(
    classes: list[object],
    labels: np.ndarray,
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    net = bf.Network.load(model)
    net.classes = np.array(classes)
    net.save(model)
    assert main(["predict", str(model), str(write_data(tmp_path / "rows.npz", ROWS, labels))]) == 0
    assert capsys.readouterr().err == "accuracy 75.00% of 4 rows\n"


def test_a_reader_that_stops_early_is_no_error(model: Path, tmp_path: Path) -> None:
    data = write_data(tmp_path / "many.npy", np.ones((200_000, 2)))  # more than a pipe holds
    command = [sys.executable, "-m", "bpls_fast", "predict", str(model), str(data)]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "1\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0
