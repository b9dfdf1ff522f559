"""The command line, as a user runs it: what it prints, where, and its exit codes."""

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import warnings
from pathlib import Path

import numpy as np
import pytest
from subprocesses import Finished, output_of, run, run_code, run_python

import bpls_fast as bf
from bpls_fast.cli import main

needs_sklearn = pytest.mark.skipif(
    importlib.util.find_spec("sklearn") is None, reason="digits is scikit-learn's"
)


def bpls_fast(*arguments: str) -> Finished:
    return run_python("-m", "bpls_fast", *arguments)


def accuracy(output: str, part: str) -> float:
    """Find the percentage that follows "train" or "test", with no other number between the two."""
    found = re.search(rf"\b{part}\D*?(\d+(?:\.\d+)?) ?%", output, re.IGNORECASE)
    assert found, f"no {part} accuracy in:\n{output}"
    return float(found[1])


def test_info_prints_version_compiler_levels_and_threads() -> None:
    output = output_of(bpls_fast("info"))
    config = bf.config()
    assert config["version"] in output
    assert config["compiler"] in output
    for level in config["isa"]["compiled"]:
        assert level in output
    threads = config["threads"]
    assert re.search(rf"threads\D*\b{threads}\b|\b{threads} threads", output, re.IGNORECASE)


def test_info_prints_what_show_config_prints() -> None:
    shown = output_of(run_code("import bpls_fast; bpls_fast.show_config()"))
    assert output_of(bpls_fast("info")) == shown


def test_the_installed_command_is_the_module() -> None:
    scripts = Path(sysconfig.get_path("scripts"))
    commands = [path for path in scripts.glob("bpls-fast*") if path.suffix in {"", ".exe"}]
    if not commands:
        pytest.skip(f"no bpls-fast in {scripts}")
    assert output_of(run(str(commands[0]), "info")) == output_of(bpls_fast("info"))


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


@needs_sklearn
@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], {}),
        (["--max-iter", "3"], {"max_sweeps": 3}),
        (["--passes", "2.5"], {"max_passes": 2.5}),
    ],
)
def test_the_options_of_train_are_the_arguments_of_refined_sweeps(
    options: list[str], arguments: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    data = bf.datasets.load("digits")
    net = bf.Network([64, 60, 10], seed=0, input_scale=1 / 16)
    report = bf.fit_refined(net, data.x_train, data.y_train, **arguments)
    assert main(["train", "digits", *options]) == 0
    output = capsys.readouterr().out
    for line in str(report).splitlines()[:-1]:  # the last one has the times
        assert line in output


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
    data = bf.datasets.load("digits")
    net = bf.Network([64, 60, 10], seed=0, input_scale=1 / 16)
    report = bf.fit_classifier(net, data.x_train, data.y_train, **arguments)
    assert main(["train", "digits", "--method", "paper", *options]) == 0
    output = capsys.readouterr().out
    for line in str(report).splitlines()[:-1]:  # the last one has the times
        assert line in output


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


@pytest.mark.parametrize(
    "arguments",
    [
        ["fly"],
        ["train", "no-such-set"],
        ["info", "--no-such"],
        ["train", "digits", "--hidden", "60,,10"],
        ["train", "digits", "--hidden", "0"],
        ["train", "digits", "--seed", "-1"],
        ["train", "digits", "--max-iter", "0"],
        ["paper", "table3"],
    ],
)
def test_an_unknown_command_set_or_option_is_exit_code_2_with_the_usage(
    arguments: list[str],
) -> None:
    finished = bpls_fast(*arguments)
    assert finished.returncode == 2
    assert "usage: bpls-fast" in finished.stderr
    assert arguments[-1] in finished.stderr
    assert "Traceback" not in finished.stderr


def test_version_prints_the_version() -> None:
    assert bf.__version__ in output_of(bpls_fast("--version"))


def test_help_names_the_commands() -> None:
    output = output_of(bpls_fast("--help"))
    assert "usage: bpls-fast" in output
    for command in ("info", "train", "predict", "paper"):
        assert command in output


# ---- predict: a small network, so that every kind of file can be made by hand


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Write a network of two inputs whose class is the sign of their sum."""
    net = bf.Network([2, 2], output_activation="identity", bias=False)
    net.weights = [np.array([[-1.0, 1.0], [-1.0, 1.0]])]
    net.classes = np.array([0, 1])
    net.save(tmp_path / "signs.npz")
    return tmp_path / "signs.npz"


ROWS = np.array([[1.0, 2.0], [-1.0, -2.0], [-3.0, 1.0], [3.0, -1.0]])
SIGNS = [1, 0, 0, 1]
LABELS = np.array([1, 0, 1, 1])  # three of four are what the network says


def write_data(path: Path, rows: np.ndarray, labels: np.ndarray | None = None) -> Path:
    """Write rows to a file of the kind that its name says, and labels where they belong in it."""
    if path.suffix == ".npz":
        np.savez(path, x=rows, **({} if labels is None else {"y": labels}))
        return path
    if labels is not None:
        rows = np.column_stack([rows, labels])
    if path.suffix == ".npy":
        np.save(path, rows)
    else:
        path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows.tolist()))
    return path


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


# ---- what goes wrong: one sentence that names the culprit


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def failure(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Give the one sentence of a command that must fail with nothing on standard output."""
    assert main([str(argument) for argument in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("bpls-fast: ")
    assert len(printed.err.splitlines()) == 1
    return printed.err


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


def test_a_data_set_that_is_not_there_is_told_where_it_was_sought(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert str(tmp_path) in failure(capsys, "train", "mnist", "--root", tmp_path)


def test_a_folder_that_is_not_there_is_refused_before_the_work(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = tmp_path / "no-such-folder" / "file"
    assert "--save" in failure(capsys, "train", "digits", "--save", nowhere)
    rows = write_data(tmp_path / "rows.npy", ROWS)
    assert "--output" in failure(capsys, "predict", model, rows, "--output", nowhere)


@pytest.mark.parametrize("folder", [".", ""])
def test_a_folder_in_the_place_of_a_file_is_refused_before_the_work(
    folder: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The data set is not there: what is told first was checked first.
    told = failure(capsys, "train", "mnist", "--root", tmp_path, "--save", folder)
    assert re.search(r"--save is \S+, a folder; expected a file", told)
    rows = write_data(tmp_path / "rows.npy", ROWS)
    assert "a folder; expected a file" in failure(
        capsys, "predict", model, rows, "--output", tmp_path
    )


def test_a_folder_that_must_not_be_written_to_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
    told = failure(capsys, "train", "mnist", "--root", tmp_path, "--save", tmp_path / "net.npz")
    assert "--save" in told
    assert "you may write to" in told
    told = failure(capsys, "paper", "table2", "--root", tmp_path, "--output", tmp_path)
    assert "--output" in told
    assert "you may write to" in told


def test_a_warning_is_one_line_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def show_config() -> None:
        warnings.warn("the ridge grew", RuntimeWarning, stacklevel=1)

    monkeypatch.setattr(bf, "show_config", show_config)
    assert main(["info"]) == 0
    assert capsys.readouterr().err == "bpls-fast: warning: the ridge grew\n"


def test_an_interrupt_ends_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bf, "show_config", interrupted)
    assert main(["info"]) == 130
    assert capsys.readouterr().err == "bpls-fast: interrupted\n"
