"""The paper's experiments: its numbers as published, the toy problems against NumPy, the files that are written.

The gradient methods need PyTorch; where it is not installed their tests are skipped. CI runs this file with it, too.
"""

import csv
import importlib.util
import inspect
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest

import bpls_fast as bf
import bpls_fast.experiments as paper
from bpls_fast.cli import main
from bpls_fast.experiments import gradient, plots, toy
from bpls_fast.experiments.images import (
    DEFAULT,
    TIMED,
    CurvePoint,
    Table1Row,
    Table2Row,
    TimePoint,
    start,
)
from bpls_fast.experiments.images import LITERAL as LITERAL_2
from bpls_fast.experiments.published import GRADIENT_METHODS
from bpls_fast.experiments.results import as_text, write_csv
from bpls_fast.experiments.toy import LITERAL, ToyError
from tests.support.idx_files import FILES, FOLDERS, idx, write
from tests.support.required import data_folder, real_images
from tests.support.subprocesses import output_of, run_code

TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not TORCH, reason="PyTorch is not installed")

FIGURES = [
    "toy_linear",
    "toy_sigmoid",
    "mnist_60",
    "mnist_100_70",
    "fashion_mnist_60",
    "fashion_mnist_100_70",
    "accuracy_time",
]


def read_csv(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def columns(kind: type) -> list[str]:
    return list(kind.__annotations__)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write small data sets under the names of the real ones: noise and a bright row of pixels for each class."""
    root, random = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    for name in FOLDERS:
        values: list[np.ndarray] = []
        for rows in (300, 100):
            labels = np.arange(rows, dtype=np.uint8) % 10
            pixels = random.integers(0, 8, (rows, 28, 28), dtype=np.uint8)
            pixels[np.arange(rows), 2 * labels] += 200
            values += [pixels, labels]
        write(root, dict(zip(FILES, map(idx, values), strict=True)), name)
    return root


@pytest.fixture(scope="module")
def real_root() -> Path:
    """Return the folder of the real data sets."""
    real_images("fashion-mnist")
    return data_folder()


def image_sets(root: Path) -> dict[str, bf.datasets.DataSet]:
    return {name: bf.datasets.load(name, root) for name in ("mnist", "fashion-mnist")}


# ---- what the paper published


def test_table_1_is_the_papers() -> None:
    bpls = [(row["BPLS"].train, row["BPLS"].test) for row in paper.TABLE1.values()]
    assert bpls == [(89.77, 89.47), (88.72, 88.38), (83.25, 81.23), (82.03, 80.21)]
    assert [setting.names for setting in paper.TABLE1] == [
        ("mnist", "60"),
        ("mnist", "100-70"),
        ("fashion-mnist", "60"),
        ("fashion-mnist", "100-70"),
    ]
    # The text: BPLS is competitive, Adam the best everywhere.
    for row in paper.TABLE1.values():
        assert list(row) == list(paper.ALGORITHMS)
        assert max(row.values()) == row["Adam"]


def test_table_2_says_that_bpls_is_about_20_times_faster() -> None:
    assert list(paper.TABLE2) == list(paper.ALGORITHMS)
    for method in GRADIENT_METHODS:
        assert paper.TABLE2[method].cpu / paper.TABLE2["BPLS"].cpu == pytest.approx(19, abs=1)


# ---- the toy problems


def test_the_rows_and_functions_are_the_papers() -> None:
    X, Y = paper.LINEAR.rows(1)
    assert X.tolist() == [[1, 1], [3, 1], [5, 1], [7, 1], [9, 1]]
    np.testing.assert_allclose(Y, np.column_stack([2 - X[:, 0] / 3, 2 * X[:, 0] - 1]))
    X, Y = paper.SIGMOID.rows(2)
    assert X[:, 0].tolist() == [2, 4, 6, 8, 10]
    assert Y[-1] == pytest.approx([1 / (1 + np.exp(-1.5)), 1 / (1 + np.exp(10**-0.25))])


def test_the_linear_toy_problem_is_ordinary_least_squares() -> None:
    runs, sigma = 50, 0.1
    found = {
        error.algorithm: error
        for error in paper.toy_errors(paper.LINEAR, runs=runs, sigmas=[sigma], methods=[])
    }
    # The same draws: two matrices of weights, then the noise.
    random = np.random.default_rng(0)
    random.uniform(size=(runs, 2, 3))
    random.uniform(size=(runs, 3, 2))
    X, Y = paper.LINEAR.rows(1)
    X_test, Y_test = paper.LINEAR.rows(2)
    train, test = [], []
    for noise in random.standard_normal((runs, *Y.shape)):
        W = np.linalg.lstsq(X, Y + sigma * noise, rcond=None)[0]
        train.append(np.linalg.norm(X @ W - Y - sigma * noise))
        test.append(np.linalg.norm(X_test @ W - Y_test))
    expected = [*(np.sqrt(np.mean(np.square(norms))) for norms in (train, test))]
    expected += [np.median(norms) for norms in (train, test)]
    for algorithm in (toy.BPLS, LITERAL):
        assert found[algorithm][4:] == pytest.approx(expected, abs=1e-8)


def test_the_safeguard_keeps_the_sigmoid_toy_problem_from_its_heavy_tail() -> None:
    safe, literal = paper.toy_errors(paper.SIGMOID, runs=300, sigmas=[0.01], methods=[])
    assert (safe.algorithm, literal.algorithm) == (toy.BPLS, LITERAL)
    assert safe.test_rmse <= 0.075
    assert safe.train_rmse < literal.train_rmse
    assert literal.test_rmse > 2 * literal.test_median


def test_more_noise_gives_larger_errors_in_the_order_of_the_sigmas() -> None:
    errors = paper.toy_errors(paper.LINEAR, runs=30, methods=[])
    assert [error.sigma for error in errors] == [*paper.LINEAR.sigmas] * 2
    rmse = [error.test_rmse for error in errors[: len(paper.LINEAR.sigmas)]]
    assert rmse == sorted(rmse)


def test_the_experiments_load_neither_torch_nor_matplotlib_before_they_are_used() -> None:
    finished = run_code("""
        import sys
        import bpls_fast.experiments.plots
        from bpls_fast.experiments import LINEAR, toy_errors
        toy_errors(LINEAR, runs=2, methods=[])
        print(sorted({"matplotlib", "scipy", "sklearn", "torch"} & set(sys.modules)))
    """)
    assert output_of(finished).strip() == "[]"


# ---- the gradient methods


def gradient_step(X: np.ndarray, Y: np.ndarray, V: np.ndarray, W: np.ndarray) -> list[np.ndarray]:
    """Compute the gradients of the mean squared error of a sigmoid network for one row."""
    hidden = 1 / (1 + np.exp(-X @ V))
    outputs = 1 / (1 + np.exp(-hidden @ W))
    delta = (
        (outputs - Y) * outputs * (1 - outputs)
    )  # the mean over two outputs cancels the square's 2
    below = (delta @ W.T) * hidden * (1 - hidden)
    return [np.outer(X, below), np.outer(hidden, delta)]


@pytest.mark.thorough
@needs_torch
def test_many_runs_of_sgd_are_each_the_run_on_its_own() -> None:
    random = np.random.default_rng(1)
    X, Y = random.uniform(size=(5, 2)), random.uniform(size=(4, 5, 2))
    start = [random.uniform(-1, 1, (4, 2, 3)), random.uniform(-1, 1, (4, 3, 2))]
    trained = gradient.train_many(
        "SGD", X, Y, start, activation="sigmoid", epochs=3, learning_rate=0.5
    )
    order = np.random.default_rng(0)
    rows = [row for _ in range(3) for row in order.permutation(5)]
    for run in range(4):
        weights = [W[run].copy() for W in start]
        for row in rows:
            for W, slope in zip(weights, gradient_step(X[row], Y[run, row], *weights), strict=True):
                W -= 0.5 * slope
        for W, found in zip(weights, trained, strict=True):
            assert found[run] == pytest.approx(W, abs=1e-12)


@needs_torch
@pytest.mark.parametrize("method", GRADIENT_METHODS)
def test_every_gradient_method_learns_the_toy_problem(method: str) -> None:
    def rmse(epochs: int) -> float:
        errors = paper.toy_errors(
            paper.LINEAR, runs=5, epochs=epochs, sigmas=[0.1], methods=[method]
        )
        return errors[-1].train_rmse

    assert rmse(100) < 0.8 * rmse(0)


@pytest.mark.thorough
@needs_torch
def test_an_epoch_of_single_rows_improves_a_classifier() -> None:
    labels = np.arange(200) % 10
    X = np.repeat(np.eye(10, dtype=np.uint8)[labels] * 255, 2, axis=1)
    net = bf.Network([20, 8, 10], seed=1)
    before = np.mean(net.decision(X).argmax(axis=1) == labels)
    *_, weights = gradient.epochs("Adam", net.weights, X, labels, 20)
    assert [W.shape for W in weights] == net.weight_shapes
    assert np.mean(net.with_weights(weights).decision(X).argmax(axis=1) == labels) > before + 0.1
    assert gradient.seconds_per_step("SGD", net.weights, X, labels, 3) > 0


@needs_torch
def test_weights_within_an_epoch_are_those_of_its_first_rows() -> None:
    labels = np.arange(25) % 10
    X = np.random.default_rng(0).integers(0, 256, (25, 20), dtype=np.uint8)
    start = bf.Network([20, 8, 10], seed=1).weights
    within = list(gradient.epochs("SGD", start, X, labels, 2, every=10))
    after = list(gradient.epochs("SGD", start, X, labels, 2))
    assert len(within) == 2 * 3
    for epoch in range(2):
        for W, V in zip(within[3 * epoch + 2], after[epoch], strict=True):
            np.testing.assert_array_equal(W, V)
    assert not np.array_equal(within[0][0], within[1][0])


@needs_torch
def test_an_unknown_gradient_method_is_told_which_there_are() -> None:
    with pytest.raises(ValueError, match=r"'Newton'; expected one of Adam, NAG, SGD, AdaGrad"):
        gradient.train_many(
            "Newton",
            np.ones((1, 2)),
            np.ones((1, 1, 2)),
            [np.ones((1, 2, 2))],
            activation="sigmoid",
            epochs=1,
        )


# ---- the images


def test_networks_start_as_the_paper_says(root: Path) -> None:
    net = start(TIMED, bf.datasets.load("fashion-mnist", root), seed=3)
    assert net.layer_sizes == (784, 100, 70, 10)
    assert {activation.name for activation in net.activations} == {"softmax"}
    assert all(np.abs(W).max() <= 1 and W.min() < -0.9 and W.max() > 0.9 for W in net.weights)
    assert np.array_equal(net.weights[0], bf.Network([784, 100, 70, 10], seed=3).weights[0])


@pytest.mark.thorough
def test_one_seed_reaches_the_papers_table_1_on_the_real_images(real_root: Path) -> None:
    rows = paper.table1(image_sets(real_root), seeds=1)
    assert len(rows) == 16
    for row in rows:
        # To the letter, Fashion-MNIST with 60 neurons stays a quarter of a point below what was published.
        short = 0.5 if row.algorithm == LITERAL_2.name and row.dataset == "fashion-mnist" else 0
        assert row.bpls >= row.paper_bpls - short, row
        assert row.iterations_most <= 15


def test_curves_tell_what_every_iteration_gives_and_mark_what_the_fit_kept(root: Path) -> None:
    setting, data = paper.SETTINGS[0], bf.datasets.load("mnist", root)
    points = paper.accuracy_curves(setting, data, seeds=2)
    for seed in (0, 1):
        run = [point for point in points if point.seed == seed]
        assert [point.iteration for point in run] == list(range(1, len(run) + 1))
        net = start(setting, data, seed)
        report = bf.fit_classifier(net, data.x_train, data.y_train)
        assert [point.train for point in run] == pytest.approx(
            [100 * accuracy for accuracy in report.accuracy]
        )
        (kept,) = (point for point in run if point.kept)
        assert kept.test == 100 * np.mean(net.predict(data.x_test) == data.y_test)


@pytest.mark.thorough
@needs_torch
def test_curves_of_the_gradient_methods_have_a_point_for_each_epoch(root: Path) -> None:
    data = bf.datasets.load("mnist", root)
    points = paper.accuracy_curves(paper.SETTINGS[0], data, seeds=1, epochs=2)
    for method in GRADIENT_METHODS:
        of_method = [point for point in points if point.algorithm == method]
        assert [(point.iteration, point.kept) for point in of_method] == [(1, False), (2, True)]


# ---- files


def test_csv_has_a_line_for_each_row_and_an_empty_cell_for_none(tmp_path: Path) -> None:
    rows = [Table2Row("BPLS", 0.25, "by, hand", 0.26, 0.17), Table2Row("SGD", None, "", 4.83, 4.69)]
    write_csv(tmp_path / "table.csv", rows)
    first, second = read_csv(tmp_path / "table.csv")
    assert first == {
        "algorithm": "BPLS",
        "seconds": "0.25",
        "how": "by, hand",
        "paper_cpu": "0.26",
        "paper_gpu": "0.17",
    }
    assert second["seconds"] == ""
    assert as_text(rows).splitlines()[2].split() == ["SGD", "-", "4.830", "4.690"]


def test_paper_table1_writes_our_accuracies_beside_the_papers(root: Path, tmp_path: Path) -> None:
    arguments = ["--quick", "--root", str(root), "--output", str(tmp_path / "new")]
    assert main(["paper", "table1", *arguments]) == 0
    rows = read_csv(tmp_path / "new" / "table1.csv")
    assert list(rows[0]) == columns(Table1Row)
    assert [row["part"] for row in rows] == ["train", "test"] * 8
    stated = ("algorithm", "full_sweeps", "resolve", "target")
    default, literal = (
        ["Algorithm 2", "3", "False", "joint"],
        ["Algorithm 2 to the letter", "1", "True", "joint"],
    )
    expected = [default, default, literal, literal] * 4
    assert [[row[name] for name in stated] for row in rows] == expected
    assert [len(row["margins"].split()) for row in rows] == [1] * 4 + [2] * 4 + [1] * 4 + [2] * 4
    assert [float(row["paper_bpls"]) for row in rows][:2] == [89.77, 89.47]
    assert [float(row["paper_adagrad"]) for row in rows][-2:] == [82.90, 81.65]
    for row in rows:
        assert float(row["bpls"]) == float(row["bpls_lowest"]) == float(row["bpls_highest"])
        assert float(row["bpls_std"]) == 0
        assert 50 < float(row["bpls"]) <= 100


def test_the_rows_of_a_variant_are_fits_with_the_arguments_they_state(root: Path) -> None:
    data = bf.datasets.load("mnist", root)
    for row in paper.table1(image_sets(root), seeds=1)[:4]:
        net = start(paper.SETTINGS[0], data, seed=0)
        report = bf.fit_classifier(
            net,
            data.x_train,
            data.y_train,
            full_sweeps=row.full_sweeps,
            resolve=row.resolve,
            target=row.target,
        )
        assert row.margins == f"{report.margins[0]:.3g}"
        assert row.iterations == report.iterations
        if row.part == "test":
            assert row.bpls == 100 * np.mean(net.predict(data.x_test) == data.y_test)
    usual = inspect.signature(bf.fit_classifier).parameters
    assert usual["full_sweeps"].default == DEFAULT.full_sweeps
    assert usual["resolve"].default is DEFAULT.resolve


@pytest.mark.thorough
def test_the_spread_is_over_the_seeds(root: Path) -> None:
    row = paper.table1(image_sets(root), seeds=2)[1]
    assert (row.part, row.seeds) == ("test", 2)
    assert row.bpls == pytest.approx((row.bpls_lowest + row.bpls_highest) / 2)
    assert row.bpls_std == pytest.approx((row.bpls_highest - row.bpls_lowest) / 2**0.5)


def test_paper_table2_says_what_was_measured(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--quick", "--root", str(root), "--output", str(tmp_path)]
    assert main(["paper", "table2", *arguments]) == 0
    assert "paper_gpu" in capsys.readouterr().out
    rows = read_csv(tmp_path / "table2.csv")
    assert list(rows[0]) == columns(Table2Row)
    assert [row["algorithm"] for row in rows] == ["BPLS", *paper.ALGORITHMS]
    assert float(rows[0]["seconds"]) > 0
    assert "uint8" in rows[0]["how"]
    assert "float32" in rows[1]["how"]
    for row in rows[2:]:
        if TORCH:
            assert float(row["seconds"]) > 0
            assert "extrapolated from 200 of 300 updates" in row["how"]
        else:
            assert row["seconds"] == ""
            assert "not installed" in row["how"]
    assert [float(row["paper_cpu"]) for row in rows] == [0.26, 0.26, 4.93, 4.94, 4.83, 4.86]


@pytest.mark.thorough
def test_paper_figures_writes_a_csv_and_a_png_for_each(root: Path, tmp_path: Path) -> None:
    arguments = ["--quick", "--runs", "5", "--root", str(root), "--output", str(tmp_path)]
    assert main(["paper", "figures", *arguments]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"{name}.{suffix}" for name in FIGURES for suffix in ("csv", "png")
    )
    for name in FIGURES:
        height, width, _ = matplotlib.image.imread(tmp_path / f"{name}.png").shape
        assert min(height, width) > 500
        kind = ToyError if "toy" in name else TimePoint if "time" in name else CurvePoint
        assert list(read_csv(tmp_path / f"{name}.csv")[0]) == columns(kind)
    algorithms = {row["algorithm"] for row in read_csv(tmp_path / "toy_sigmoid.csv")}
    assert algorithms == {"BPLS", LITERAL, *(GRADIENT_METHODS if TORCH else ())}
    published = read_csv(tmp_path / "accuracy_time.csv")
    assert [float(row["test"]) for row in published if row["source"] == "paper, CPU"] == [
        row.test for row in paper.TABLE1[TIMED].values()
    ]


def test_without_matplotlib_and_torch_the_csv_files_are_written_and_what_is_missing_is_said(
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(plots, "matplotlib_installed", lambda: False)
    monkeypatch.setattr(gradient, "torch_installed", lambda: False)
    arguments = ["--quick", "--runs", "3", "--root", str(root), "--output", str(tmp_path)]
    assert main(["paper", "figures", *arguments]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"{name}.csv" for name in FIGURES
    )
    output = capsys.readouterr().out
    assert "pip install 'bpls_fast[plot]'" in output
    assert "PyTorch is not installed" in output
    assert {row["algorithm"] for row in read_csv(tmp_path / "toy_linear.csv")} == {"BPLS", LITERAL}
    assert main(["paper", "table2", *arguments]) == 0
    assert {row["seconds"] for row in read_csv(tmp_path / "table2.csv")[2:]} == {""}


@pytest.mark.parametrize(
    "experiment", ["table1", "table2", pytest.param("figures", marks=pytest.mark.thorough)]
)
def test_each_set_that_an_experiment_needs_is_loaded_once(
    experiment: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    load = bf.datasets.load

    def counted(name: str, *arguments: Any) -> bf.datasets.DataSet:
        loaded.append(name)
        return load(name, *arguments)

    monkeypatch.setattr(bf.datasets, "load", counted)
    monkeypatch.setattr(gradient, "torch_installed", lambda: False)
    arguments = ["--quick", "--runs", "1", "--root", str(root), "--output", str(tmp_path)]
    assert main(["paper", experiment, *arguments]) == 0
    assert sorted(loaded) == ["fashion-mnist", "mnist"][: 1 if experiment == "table2" else 2]


@pytest.mark.parametrize("experiment", ["table1", "table2", "figures"])
def test_what_is_missing_is_one_sentence_before_the_work(
    experiment: str,
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def failure(*arguments: object) -> str:
        assert main(["paper", experiment, *map(str, arguments)]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert len(printed.err.splitlines()) == 1
        return printed.err

    nowhere, output = tmp_path / "nowhere", tmp_path / "results"
    assert str(nowhere) in failure("--root", nowhere, "--output", output)
    assert [*output.iterdir()] == []
    file = tmp_path / "file"
    file.write_text("")
    for place in (file, file / "folder"):
        told = failure("--root", root, "--output", place)
        assert f"--output is {place}, and {file}" in told or f"{place} is a file" in told
        assert "expected a folder" in told
    monkeypatch.setattr(gradient, "torch_installed", lambda: False)
    told = failure("--root", root, "--output", output, "--epochs", 1)
    assert "--epochs is 1" in told
    assert "pip install torch" in told
    assert [*output.iterdir()] == []
