"""Files that `bpls-fast predict` refuses, headers and labels of CSV files."""

from pathlib import Path

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.cli import main
from tests.support.command_line import LABELS, ROWS, failure, write_data


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def test_files_that_cannot_be_used_are_named(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no-such.npz" in failure(capsys, "predict", tmp_path / "no-such.npz", "digits")
    assert "no-such.npy" in failure(capsys, "predict", model, tmp_path / "no-such.npy")
    for name in ("rows.npy", "rows.npz"):
        data = write_data(tmp_path / name, ROWS)
        damage(data)
        assert name in failure(capsys, "predict", model, data)
    text = tmp_path / "rows.txt"
    text.write_text("1 2\n")
    assert "rows.txt" in failure(capsys, "predict", model, text)
    damage(model)
    assert "signs.npz" in failure(capsys, "predict", model, write_data(tmp_path / "a.npy", ROWS))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("1,2\n\n3\n", "1 columns in line 3; expected 2, as in line 1"),
        ("1,2\n3,x\n", "'x' in line 2, column 2; expected a number"),
        ("a,b\n1,2\n\n3,x\n", "'x' in line 4, column 2; expected a number"),
        ("x,2\n3,4\n", "'x' in line 1, column 1; expected a number"),
        ("1,x\n3,4\n", "'x' in line 1, column 2; expected a number"),
        (",a,b\n0,1,2\n", "'' in line 1, column 1; expected a number"),
        ("a, \n1,2\n", "'a' in line 1, column 1; expected a number"),
        ("1,2,\n3,4,1\n", "label '' in line 1, column 3; expected a number"),
        ("a,b\n", "no rows"),
        ("", "no rows"),
        ("1,2,3,4\n", "4 columns; expected 2"),
        ("1,2,x\n", "label 'x' in line 1, column 3; expected a number"),
        ("1,nan\n", "NaN"),
        ("nan,nan\n1,2\n", "NaN"),
        ("a;b\n1;2\n", "semicolons between its columns; expected commas"),
        ("1\t2\n3\t4\n", "tabs between its columns; expected commas"),
        ("1,5;2,5\n", "'5;2' in line 1, column 2"),
    ],
)
def test_a_csv_that_is_wrong_is_told_what_is(
    content: str, told: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "rows.csv"
    data.write_text(content)
    message = failure(capsys, "predict", model, data)
    assert told in message
    assert "rows.csv" in message or "NaN" in told


def test_a_csv_that_is_no_text_is_named(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "rows.csv"
    data.write_bytes(b"a,b\n1,2\xff\n")
    assert "rows.csv is no text in UTF-8: byte 7 is 0xff" in failure(capsys, "predict", model, data)
    data.write_text("1," + "2" * 200_000)  # more than a cell may hold
    assert "rows.csv cannot be read in line 1" in failure(capsys, "predict", model, data)


@pytest.mark.parametrize(
    ("header", "content", "expected", "warned"),
    [
        ("auto", "a,b\n1,2\n", ["1"], False),
        ("auto", "0,1\n-1,-2\n", ["1", "0"], True),
        ("auto", "0,1,label\n1,2,0\n", None, True),
        ("yes", "0,1\n-1,-2\n", ["0"], False),
        ("yes", ",b\n-1,-2\n", ["0"], False),
        ("no", "0,1\n-1,-2\n", ["1", "0"], False),
        ("no", "a,b\n-1,-2\n", None, False),
    ],
)
def test_the_first_line_of_a_csv_is_a_header_where_it_looks_like_one_or_the_option_says_so(
    header: str,
    content: str,
    expected: list[str] | None,
    warned: bool,
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = tmp_path / "rows.csv"
    data.write_text(content)
    code = main(["predict", str(model), str(data), "--header", header])
    printed = capsys.readouterr()
    assert code == (2 if expected is None else 0)
    assert printed.out.split() == (expected or [])
    assert ("say --header yes" in printed.err) == warned
    assert expected is not None or "line 1, column" in printed.err


def test_the_header_of_a_file_that_is_no_csv_is_refused(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = write_data(tmp_path / "rows.npy", ROWS)
    assert "expected a .csv file" in failure(capsys, "predict", model, rows, "--header", "no")


def test_the_case_of_a_suffix_does_not_matter(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, output = tmp_path / "ROWS.CSV", tmp_path / "LABELS.NPY"
    data.write_text("1,2\n-1,-2\n")
    assert main(["predict", str(model), str(data), "--output", str(output)]) == 0
    assert capsys.readouterr().out == ""
    assert np.load(output).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        ([False, True], ["True", "False", "true", "TRUE"]),
        ([False, True], ["1", "0", "1.0", "1"]),
        ([2**60, 2**60 + 1], [str(2**60 + 1), str(2**60), str(2**60 + 1), str(2**60 + 1)]),
        ([0, 1], ["1.0", "0.0", "1.0", "1.0"]),
        ([0.5, 1.5], ["1.5", "0.5", "1.5", "1.5"]),
        ([b"no", b"yes"], ["yes", "no", "yes", "yes"]),
    ],
)
def test_the_labels_of_a_csv_are_read_as_the_classes_are(
    classes: list[object],
    labels: list[str],
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    net = bf.Network.load(model)
    net.classes = np.array(classes)
    net.save(model)
    data = tmp_path / "rows.csv"
    lines = (f"{x},{y},{label}\n" for (x, y), label in zip(ROWS, labels, strict=True))
    data.write_text("".join(lines))
    assert main(["predict", str(model), str(data)]) == 0
    assert capsys.readouterr().err == "accuracy 75.00% of 4 rows\n"


def test_a_label_that_is_neither_true_nor_false_is_told_where_it_stands(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = bf.Network.load(model)
    net.classes = np.array([False, True])
    net.save(model)
    data = tmp_path / "rows.csv"
    data.write_text("1,2,True\n1,2,2\n")
    told = "label '2' in line 2, column 3; expected True or False"
    assert told in failure(capsys, "predict", model, data)


def test_arrays_of_the_wrong_kind_are_told_what_was_expected(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "other.npz", images=ROWS)
    assert "expected the rows x" in failure(capsys, "predict", model, tmp_path / "other.npz")
    vector = write_data(tmp_path / "vector.npy", ROWS[0])
    assert "expected 2" in failure(capsys, "predict", model, vector)
    data = write_data(tmp_path / "few.npz", ROWS, LABELS[:2])
    assert "one for each row" in failure(capsys, "predict", model, data)
