"""The `bpls-fast` command: info, train, predict, paper.

What fails is told in one sentence on standard error, with exit code 2. Results go to standard output.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import bpls_fast as bf
from bpls_fast.training.bpls.backward_sweep import CHOICES

__all__ = ["main"]

Array = NDArray[Any]

DATASETS = ("digits", "mnist", "fashion-mnist")
INPUT_SCALES = {"digits": 1 / 16}
"""What brings the pixels of a set to [0, 1], where it is not the 1/255 that bytes get anyway."""

EXPECTED = (
    ImportError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    np.linalg.LinAlgError,
)
"""What the package raises for what a user can put right."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; give its exit code.

    Examples
    --------
    >>> from bpls_fast.cli import main
    >>> main(["info"])  # doctest: +ELLIPSIS
    bpls_fast ...
    0
    """
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if chosen.places:
        print(*(place() for place in chosen.places))
        return 0
    if chosen.command is None:
        parser.error("the following arguments are required: COMMAND")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = _show_warning
            chosen.run(chosen)
            sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except EXPECTED as error:
        return _fail(error)
    except KeyboardInterrupt:
        print("bpls-fast: interrupted", file=sys.stderr)
        return 130
    return 0


def _fail(error: Exception) -> int:
    sentence = " ".join(str(error).split()) or type(error).__name__
    print(f"bpls-fast: {sentence}", file=sys.stderr)
    return 2


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"bpls-fast: warning: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bpls-fast", description="Closed-form training of neural networks."
    )
    parser.add_argument("--version", action="version", version=f"bpls_fast {bf.__version__}")
    for option, place, what in (
        ("--cmakedir", bf.get_cmake_dir, "print the folder for CMAKE_PREFIX_PATH"),
        ("--includes", lambda: f"-I{bf.get_include()}", "print the compiler's options"),
        ("--libs", bf.get_libs, "print the linker's options"),
    ):
        parser.add_argument(
            option, dest="places", action="append_const", const=place, default=[], help=what
        )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    info = commands.add_parser(
        "info", help="show the version, compiler, instruction sets and threads"
    )
    info.set_defaults(run=lambda _: bf.show_config())
    _add_train(commands)
    _add_predict(commands)
    _add_paper(commands)
    return parser


def _add_train(commands: Any) -> None:
    train = commands.add_parser("train", help="train on a data set and print the accuracies")
    train.add_argument("dataset", choices=DATASETS)
    train.add_argument(
        "--method",
        choices=("refined", "paper"),
        default="refined",
        help="refined sweeps (the default), or the paper's Algorithm 2",
    )
    train.add_argument(
        "--hidden",
        type=_sizes,
        default=(60,),
        metavar="SIZES",
        help="neurons of the hidden layers, such as 100,70; 60 by default",
    )
    train.add_argument(
        "--activation",
        choices=bf.activations,
        default="softmax",
        metavar="NAME",
        help=f"of the hidden layers: {', '.join(bf.activations)}; softmax by default",
    )
    train.add_argument(
        "--seed", type=_natural, default=0, help="of the initial weights; 0 by default"
    )
    train.add_argument(
        "--max-iter",
        type=_positive,
        metavar="N",
        help="sweeps at most; by default 15 of the paper's, as many refined ones as --passes allows",
    )
    refined = train.add_argument_group("refined sweeps")
    refined.add_argument(
        "--passes",
        type=_above_zero,
        metavar="N",
        help="passes over the data at most; 5 by default",
    )
    paper = train.add_argument_group("the paper's Algorithm 2")
    paper.add_argument(
        "--full-sweeps",
        type=_positive,
        metavar="N",
        help="sweeps over all rows; 3 by default, the paper has 1",
    )
    paper.add_argument(
        "--resolve",
        action="store_true",
        help="solve each layer but the first again on its updated matrix, as the paper does",
    )
    paper.add_argument(
        "--target",
        choices=("joint", "per_output"),
        help="of hidden layers: from all outputs at once (the default) or, by the paper's formula, from one",
    )
    paper.add_argument(
        "--choose-output",
        choices=CHOICES,
        metavar="NAME",
        help=f"which output per_output takes: {', '.join(CHOICES)}; mean by default",
    )
    train.add_argument("--save", metavar="MODEL", help="write the network to this .npz file")
    train.add_argument("--quiet", action="store_true", help="print the accuracies alone")
    _add_root(train)
    train.set_defaults(run=_train)


def _add_predict(commands: Any) -> None:
    predict = commands.add_parser(
        "predict",
        help="give the labels of rows",
        description="Print a label for each row, or write them to a file. Accuracies are told where labels are known.",
    )
    predict.add_argument("model", metavar="MODEL", help="a file that train --save wrote")
    predict.add_argument(
        "data",
        metavar="DATA",
        help="a .npy or .csv file of rows, one column more than the network has inputs being the labels; a .npz "
        f"file with the rows x and perhaps the labels y; or {', '.join(DATASETS)}: its test part",
    )
    predict.add_argument(
        "--output", metavar="FILE", help="where to write the labels: .npy, or text, one in a line"
    )
    predict.add_argument(
        "--header",
        choices=("yes", "no", "auto"),
        default="auto",
        help="whether the first line of a .csv file names the columns; auto, the default: it does where none of its "
        "inputs is a number or empty",
    )
    _add_root(predict)
    predict.set_defaults(run=_predict)


def _add_paper(commands: Any) -> None:
    paper = commands.add_parser(
        "paper", help="run the paper's experiments, its own numbers beside ours"
    )
    paper.add_argument("experiment", choices=("table1", "table2", "figures"))
    paper.add_argument(
        "--output", type=Path, default=Path(), metavar="FOLDER", help="for CSV and PNG files"
    )
    paper.add_argument(
        "--seeds", type=_positive, metavar="N", help="fits of each network of images; 5 by default"
    )
    paper.add_argument(
        "--runs",
        type=_positive,
        metavar="N",
        help="Monte Carlo runs of the toy problems; 1000 by default",
    )
    paper.add_argument(
        "--epochs",
        type=_natural,
        default=0,
        metavar="N",
        help="epochs of the gradient methods in the figures of images: the paper has 40, each of them takes minutes "
        "for the 16 curves; 0 by default, which shows what the paper published alone",
    )
    paper.add_argument(
        "--quick", action="store_true", help="one seed, 50 runs, short gradient methods: a look"
    )
    _add_root(paper)
    paper.set_defaults(run=_paper)


def _add_root(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--root",
        metavar="FOLDER",
        help="where the data sets are, in torchvision's layout; by default what BPLS_DATA names",
    )


def _sizes(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(size) for size in text.split(","))
    except ValueError:
        sizes = (0,)
    if min(sizes) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}; expected whole numbers >= 1, such as 100,70")
    return sizes


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r}; expected a whole number >= 0")
    return int(text)


def _above_zero(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a whole number >= 1")
    return int(text)


def _check_file(path: str | None, option: str) -> None:
    """Refuse, before any work, a file that could not be written after it."""
    if path is None:
        return
    if Path(path).is_dir():
        raise IsADirectoryError(f"{option} is {path or repr(path)}, a folder; expected a file")
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{option} is {path}; expected a file in a folder that is there")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{option} is {path}; expected a file in a folder you may write to")


def _make_folder(path: Path, option: str) -> None:
    """Make a folder for results; refuse a place where nothing can be written."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise NotADirectoryError(
            f"{option} is {path}, and {error.filename} is a file; expected a folder"
        ) from error
    if not os.access(path, os.W_OK):
        raise PermissionError(f"{option} is {path}; expected a folder you may write to")


# ---- train


def _train(chosen: argparse.Namespace) -> None:
    options = _options_of_method(chosen)
    _check_file(chosen.save, "--save")
    began = time.perf_counter()
    data = bf.datasets.load(chosen.dataset, chosen.root)
    loaded = time.perf_counter() - began
    net = bf.Network(
        [data.x_train.shape[1], *chosen.hidden, int(data.y_train.max()) + 1],
        activation=chosen.activation,
        seed=chosen.seed,
        input_scale=INPUT_SCALES.get(chosen.dataset),
    )
    fit = bf.fit_refined if chosen.method == "refined" else bf.fit_classifier
    report = fit(net, data.x_train, data.y_train, **options)
    if not chosen.quiet:
        print(f"{chosen.dataset}: {len(data.x_train)} training and {len(data.x_test)} test images")
        print(f"{net}, seed {chosen.seed}")
        print(report)
        print(f"loaded in {loaded:.3f} s, trained in {report.seconds['total']:.3f} s")
    print(f"train accuracy {_accuracy(net.predict(data.x_train), data.y_train):.2%}")
    print(f"test accuracy  {_accuracy(net.predict(data.x_test), data.y_test):.2%}")
    if chosen.save is not None:
        net.save(chosen.save)
        if not chosen.quiet:
            print(f"saved to {chosen.save}")


def _options_of_method(chosen: argparse.Namespace) -> dict[str, Any]:
    """Give what the fit is given; options of the other method are refused."""
    of_refined = {"max_passes": chosen.passes}
    of_paper = {
        "full_sweeps": chosen.full_sweeps,
        "resolve": chosen.resolve or None,
        "target": chosen.target,
        "choose_output": chosen.choose_output,
    }
    refined = chosen.method == "refined"
    for name, value in (of_paper if refined else of_refined).items():
        if value is not None:
            option = "passes" if name == "max_passes" else name.replace("_", "-")
            raise ValueError(
                f"--{option} is given and --method is {chosen.method}; "
                f"expected --method {'paper' if refined else 'refined'}"
            )
    if chosen.choose_output is not None and chosen.target != "per_output":
        raise ValueError(
            f"--choose-output is {chosen.choose_output} and --target is joint, which takes all outputs; "
            "expected --target per_output"
        )
    options = {**(of_refined if refined else of_paper)}
    options["max_sweeps" if refined else "max_iter"] = chosen.max_iter
    return {name: value for name, value in options.items() if value is not None}


def _accuracy(predicted: Array, labels: Array) -> float:
    return float(np.mean(predicted == labels))


# ---- predict


def _predict(chosen: argparse.Namespace) -> None:
    _check_file(chosen.output, "--output")
    net = bf.Network.load(chosen.model)
    X, labels = _read_rows(chosen.data, chosen.root, net, chosen.header)
    predicted = net.predict(X)
    if chosen.output is None:
        _write_text(sys.stdout, predicted)
    elif Path(chosen.output).suffix.lower() == ".npy":
        with open(chosen.output, "wb") as binary:  # by a name, save would add .npy to .NPY
            np.save(binary, predicted, allow_pickle=False)
    else:
        with open(chosen.output, "w", encoding="utf-8") as file:
            _write_text(file, predicted)
    if labels is not None:
        # Labels that are printed may go down a pipe: the accuracy must not stand among them.
        told = sys.stderr if chosen.output is None else sys.stdout
        print(f"accuracy {_accuracy(predicted, labels):.2%} of {len(labels)} rows", file=told)


def _write_text(file: Any, predicted: Array) -> None:
    """Write a label in each line, or the outputs of a network without classes, between commas."""
    for row in predicted.tolist():
        file.write(",".join(map(str, row)) if isinstance(row, list) else str(row))
        file.write("\n")


def _read_rows(
    data: str, root: str | None, net: bf.Network, header: str
) -> tuple[Array, Array | None]:
    """Give the rows of a file or a data set, and their labels where they are known."""
    is_csv = data not in DATASETS and Path(data).suffix.lower() == ".csv"
    if header != "auto" and not is_csv:
        raise ValueError(f"--header is {header} and DATA is {data}; expected a .csv file")
    if is_csv:
        return _read_csv(data, header, net)
    if data in DATASETS:
        images = bf.datasets.load(data, root)
        return _checked(data, images.x_test, images.y_test, net)
    arrays = _read_numpy(data)
    if "rows" not in arrays:
        if "x" not in arrays:
            raise ValueError(
                f"{data} has the arrays {', '.join(arrays)}; expected the rows x and perhaps the labels y"
            )
        return _checked(data, arrays["x"], arrays.get("y"), net)
    rows, inputs = arrays["rows"], net.layer_sizes[0]
    if rows.ndim == 2 and rows.shape[1] == inputs + 1:
        return _checked(data, rows[:, :inputs], rows[:, inputs], net)
    return _checked(data, rows, None, net)


def _read_numpy(path: str) -> dict[str, Array]:
    """Read a .npz file's arrays by name, or the one array of a .npy file as "rows"."""
    try:
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {"rows": loaded}
            return {name: loaded[name] for name in loaded.files}
    except (EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            f"{path} is no .npy, .npz or .csv file of numbers, or it is damaged; expected one of these, or "
            f"{', '.join(DATASETS)}"
        ) from error


class Line(NamedTuple):
    """A line of a .csv file: its number, from 1, and its cells."""

    number: int
    cells: list[str]


def _read_csv(path: str, header: str, net: bf.Network) -> tuple[Array, Array | None]:
    """Give the rows of a .csv file, and their labels if it has a column for them and the network has classes."""
    lines, inputs = _read_lines(path), net.layer_sizes[0]
    _check_delimiter(path, lines)
    if lines and _is_header(path, lines[0], header, inputs):
        del lines[0]
    if not lines:
        raise ValueError(f"{path} has no rows; expected at least 1")
    columns = len(lines[0].cells)
    for number, cells in lines:
        if len(cells) != columns:
            raise ValueError(
                f"{path} has {len(cells)} columns in line {number}; expected {columns}, as in line {lines[0].number}"
            )
    if columns not in (inputs, inputs + 1):
        raise ValueError(
            f"{path} has {columns} columns; expected {inputs}, the network's inputs, or one more with labels"
        )
    X = np.array([_numbers(path, line, inputs) for line in lines])
    if columns == inputs or net.classes is None:
        return X, None
    places = [f"line {number}, column {columns}" for number, _ in lines]
    labels = _labels_of([cells[inputs] for _, cells in lines], net.classes, path, places)
    return _checked(path, X, labels, net)


def _read_lines(path: str) -> list[Line]:
    """Give the lines that are not empty."""
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is no text in UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}"
        ) from error
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        return [Line(reader.line_num, cells) for cells in reader if cells]
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read in line {reader.line_num}: {error}") from error


def _check_delimiter(path: str, lines: list[Line]) -> None:
    for delimiter, name in ((";", "semicolons"), ("\t", "tabs")):
        if lines and all(len(cells) == 1 and delimiter in cells[0] for _, cells in lines):
            raise ValueError(f"{path} has {name} between its columns; expected commas")


def _is_header(path: str, line: Line, header: str, inputs: int) -> bool:
    if header != "auto":
        return header == "yes"
    cells = line.cells[:inputs]
    if inputs > 1 and cells == [str(column) for column in range(inputs)]:
        warnings.warn(
            f"line {line.number} of {path} is 0, 1, ... and was read as a row; if it names columns, say --header yes",
            stacklevel=1,
        )
    return not any(_is_number(cell) or not cell.strip() for cell in cells)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(path: str, line: Line, inputs: int) -> Array:
    cells = line.cells[:inputs]
    try:
        return np.array([*map(float, cells)])
    except ValueError as error:
        column = next(column for column, cell in enumerate(cells) if not _is_number(cell))
        raise ValueError(
            f"{path} has {cells[column]!r} in line {line.number}, column {column + 1}; expected a number"
        ) from error


def _labels_of(texts: Sequence[str], classes: Array, data: str, places: Sequence[str]) -> Array:
    """Give labels that were written as text in the type of a network's classes; dates stay text."""
    read, expected = _LABEL_TYPES.get(classes.dtype.kind, (str, "text"))
    labels = []
    for text, place in zip(texts, places, strict=True):
        try:
            labels.append(read(text))
        except ValueError as error:
            raise ValueError(
                f"{data} has the label {text!r} in {place}; expected {expected}, as the network's classes are"
            ) from error
    return np.array(labels)


def _boolean(text: str) -> bool:
    named = {"true": True, "false": False}.get(text.strip().lower())
    return bool((0.0, 1.0).index(float(text))) if named is None else named


def _whole(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


_LABEL_TYPES: dict[str, tuple[Callable[[str], Any], str]] = {
    "b": (_boolean, "True or False"),
    "i": (_whole, "a number"),
    "u": (_whole, "a number"),
    "f": (float, "a number"),
    "S": (str.encode, "text"),
}
"""How a label is read, and what it is called, for the kind of NumPy type that the classes have."""


def _checked(
    data: str, X: Array, labels: Array | None, net: bf.Network
) -> tuple[Array, Array | None]:
    """Give rows as numbers, and labels as the network's classes are."""
    if X.dtype.kind == "U":
        try:
            X = X.astype(np.float64)
        except ValueError as error:
            raise ValueError(f"{data} holds a cell that is no number: {error}") from error
    if labels is None or net.classes is None:
        return X, None
    if labels.shape != (len(X),):
        raise ValueError(
            f"{data} has labels of shape {labels.shape}; expected ({len(X)},), one for each row"
        )
    if labels.dtype.kind == "U":
        places = [f"row {row}" for row in range(len(labels))]
        labels = _labels_of(labels.tolist(), net.classes, data, places)
    if not _can_match(labels, net.classes):
        warnings.warn(
            f"no accuracy is told: {data} has labels such as {labels.tolist()[0]!r}, the network's classes are such "
            f"as {net.classes.tolist()[0]!r}",
            stacklevel=1,
        )
        return X, None
    return X, labels


def _can_match(labels: Array, classes: Array) -> bool:
    """Tell whether labels can be what a network with these classes says: numbers for numbers, 0 and 1 for booleans."""
    if labels.dtype.kind in "biuf" and classes.dtype.kind == "b":
        return bool(np.isin(labels, (0, 1)).all())
    if labels.dtype.kind == "b" and classes.dtype.kind in "iuf":
        return bool(np.isin(classes, (0, 1)).all())
    if labels.dtype.kind in "iuf":
        return classes.dtype.kind in "iuf"
    return labels.dtype.kind == classes.dtype.kind


# ---- paper


def _paper(chosen: argparse.Namespace) -> None:
    from bpls_fast import experiments as paper
    from bpls_fast.experiments.images import TIMED
    from bpls_fast.experiments.results import as_text, write_csv

    _check_torch(chosen.epochs)
    _make_folder(chosen.output, "--output")
    seeds = chosen.seeds or (1 if chosen.quick else 5)
    settings = (TIMED,) if chosen.experiment == "table2" else paper.SETTINGS
    names = dict.fromkeys(setting.dataset for setting in settings)
    data = {name: bf.datasets.load(name, chosen.root) for name in names}
    if chosen.experiment == "figures":
        _figures(chosen, data, seeds)
        return
    if chosen.experiment == "table1":
        rows: list[Any] = [*paper.table1(data, seeds=seeds)]
    else:
        steps = 200 if chosen.quick else 2000
        rows = [*paper.table2(data[TIMED.dataset], seeds=seeds, steps=steps)]
    print(as_text(rows))
    path = chosen.output / f"{chosen.experiment}.csv"
    write_csv(path, rows)
    print(f"written: {path}")


def _check_torch(epochs: int) -> None:
    from bpls_fast.experiments import gradient

    if epochs and not gradient.torch_installed():
        raise ImportError(
            f"--epochs is {epochs} and PyTorch, which has the gradient methods, is not installed: pip install torch"
        )


def _figures(
    chosen: argparse.Namespace, data: Mapping[str, bf.datasets.DataSet], seeds: int
) -> None:
    from bpls_fast import experiments as paper
    from bpls_fast.experiments import gradient, plots
    from bpls_fast.experiments.images import TIMED
    from bpls_fast.experiments.results import write_csv

    draws = plots.matplotlib_installed()
    if not draws:
        print("matplotlib is not installed, so no PNG is written: pip install 'bpls_fast[plot]'")
    if not gradient.torch_installed():
        print("PyTorch is not installed, so no gradient method is run: pip install torch")

    def write(name: str, rows: Sequence[Any], plot: Any, *arguments: Any) -> None:
        paths = [chosen.output / f"{name}.csv", chosen.output / f"{name}.png"]
        write_csv(paths[0], rows)
        if draws:
            plot(paths[1], *arguments, rows)
        print("written:", *paths[: 1 + draws], flush=True)

    runs, epochs = chosen.runs or (50 if chosen.quick else 1000), 20 if chosen.quick else 1000
    for problem in paper.PROBLEMS:
        errors = paper.toy_errors(problem, runs=runs, epochs=epochs)
        write(f"toy_{problem.name}", errors, plots.plot_toy)
    for setting in paper.SETTINGS:
        points = paper.accuracy_curves(
            setting, data[setting.dataset], seeds=seeds, epochs=chosen.epochs
        )
        name = f"{setting.dataset}_{setting.layers}".replace("-", "_")
        write(name, points, plots.plot_curves, setting)
    times = paper.accuracy_and_time(data[TIMED.dataset], seeds=seeds)
    write("accuracy_time", times, plots.plot_time)
