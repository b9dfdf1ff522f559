"""The image sets: the real files against two other readers, where they are looked for, downloading."""

import functools
import gzip
import importlib.util
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from bpls_fast.datasets import DataSet, load
from tests.support.idx_files import FILES, FOLDERS, made, unzipped, write
from tests.support.required import data_folder, missing
from tests.support.subprocesses import output_of, run_code

SETS = list(FOLDERS)

# The public torchvision wheel wants a CUDA torch; with another one its import stops at these two
# operators, which no loader uses.
IMPORT_TORCHVISION = """
try:
    import torchvision.datasets
except RuntimeError:
    import torch

    operators = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import torchvision.datasets
"""


@pytest.fixture
def torchvision_there() -> None:
    if not (importlib.util.find_spec("torch") and importlib.util.find_spec("torchvision")):
        missing("torchvision is not installed")


def real_files(name: str) -> list[Path]:
    """Find the files, plain or gzipped; plain where both are there, as the package does."""
    raw = data_folder() / FOLDERS[name] / "raw"
    paths = [raw / file if (raw / file).is_file() else raw / f"{file}.gz" for file in FILES]
    if not all(path.is_file() for path in paths):
        missing(f"{raw} has no complete {name}")
    return paths


def expected_set(files: dict[str, bytes]) -> DataSet:
    """Decode by the sizes of the headers alone."""
    x_train, y_train, x_test, y_test = files.values()
    return DataSet(
        np.frombuffer(x_train, np.uint8, offset=16).reshape(-1, 784),
        np.frombuffer(y_train, np.uint8, offset=8).astype(np.int64),
        np.frombuffer(x_test, np.uint8, offset=16).reshape(-1, 784),
        np.frombuffer(y_test, np.uint8, offset=8).astype(np.int64),
    )


def assert_same_set(got: DataSet, expected: DataSet) -> None:
    for field, one, other in zip(DataSet._fields, got, expected, strict=True):
        assert one.dtype == other.dtype, field
        np.testing.assert_array_equal(one, other, err_msg=field)


# The sets


@pytest.mark.parametrize("name", SETS)
def test_a_real_set_has_its_rows_and_columns_and_every_class(name: str) -> None:
    real_files(name)
    data = load(name, root=data_folder())
    assert data.x_train.shape == (60_000, 784)
    assert data.x_test.shape == (10_000, 784)
    assert (data.x_train.min(), data.x_train.max()) == (0, 255)
    for x, y in ((data.x_train, data.y_train), (data.x_test, data.y_test)):
        assert (x.dtype, y.dtype) == (np.uint8, np.int64)
        assert y.shape == (len(x),)
        assert sorted(set(y.tolist())) == list(range(10))
        assert x.flags.c_contiguous


@pytest.mark.parametrize("name", SETS)
def test_a_real_set_is_what_numpy_decodes_from_its_bytes(name: str) -> None:
    files = {path.name: unzipped(path) for path in real_files(name)}
    assert_same_set(load(name, root=data_folder()), expected_set(files))


@pytest.mark.thorough
@pytest.mark.usefixtures("torchvision_there")
def test_the_real_sets_are_what_torchvision_loads(tmp_path: Path) -> None:
    for name, folder in FOLDERS.items():
        raw = tmp_path / folder / "raw"
        raw.mkdir(parents=True)
        for path in real_files(name):  # torchvision reads no gzipped files
            (raw / path.name.removesuffix(".gz")).write_bytes(unzipped(path))
    code = """
import sys
import numpy as np
import bpls_fast as bf

ours, theirs = sys.argv[1:]
for name, loader in (
    ("mnist", torchvision.datasets.MNIST),
    ("fashion-mnist", torchvision.datasets.FashionMNIST),
):
    data = bf.datasets.load(name, root=ours)
    for train, x, y in ((True, data.x_train, data.y_train), (False, data.x_test, data.y_test)):
        loaded = loader(theirs, train=train)
        values, labels = loaded.data.numpy(), loaded.targets.numpy()
        assert (values.dtype, labels.dtype) == (x.dtype, y.dtype)
        assert np.array_equal(values.reshape(len(values), -1), x)
        assert np.array_equal(labels, y)
        print(name, len(values))
"""
    output = output_of(run_code(IMPORT_TORCHVISION + code, str(data_folder()), str(tmp_path)))
    assert output.split() == [
        *("mnist", "60000", "mnist", "10000"),
        *("fashion-mnist", "60000", "fashion-mnist", "10000"),
    ]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
@pytest.mark.parametrize("name", SETS)
def test_a_made_set_is_loaded_plain_or_gzipped(name: str, packed: bool, tmp_path: Path) -> None:
    files = made()
    write(tmp_path, files, name, packed)
    data = load(name, root=str(tmp_path))
    assert_same_set(data, expected_set(files))
    assert all(array.flags.writeable for array in data)


def test_some_files_may_be_plain_and_some_gzipped(tmp_path: Path) -> None:
    files = made()
    raw = write(tmp_path, files)
    for file in FILES[1:3]:
        (raw / f"{file}.gz").write_bytes(gzip.compress(files[file]))
        (raw / file).unlink()
    assert_same_set(load("mnist", root=tmp_path), expected_set(files))


def test_digits_are_bytes_with_labels_and_need_no_folder() -> None:
    pytest.importorskip("sklearn", reason="digits is scikit-learn's")
    data = load("digits")
    assert (data.x_train.dtype, data.y_train.dtype) == (np.uint8, np.int64)
    assert (len(data.x_train), len(data.x_test)) == (1437, 360)
    assert data.x_train.max() == 16


def test_an_unknown_name_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'cifar'.*'digits', 'mnist', 'fashion-mnist'"):
        load("cifar")


# Where the files are looked for


def test_the_folder_is_bpls_data_else_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, cache, home = (tmp_path / name for name in ("data", "cache", "home"))
    sets = {}
    for rows, root in enumerate(
        [data, cache / "bpls_fast", home / ".cache" / "bpls_fast"], start=1
    ):
        sets[root] = made(train=rows)
        write(root, sets[root])
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("BPLS_DATA", str(data))
    assert len(load("mnist").x_train) == 1
    assert len(load("mnist", root=cache / "bpls_fast").x_train) == 2
    assert len(load("mnist", root="~/.cache/bpls_fast").x_train) == 3
    monkeypatch.delenv("BPLS_DATA")
    assert len(load("mnist").x_train) == 2
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert len(load("mnist").x_train) == 3


@pytest.mark.parametrize("file", FILES)
def test_a_missing_file_is_named_with_where_it_was_looked_for_and_what_to_do(
    file: str, tmp_path: Path
) -> None:
    raw = write(tmp_path, made(), "fashion-mnist")
    (raw / file).unlink()
    with pytest.raises(FileNotFoundError) as caught:
        load("fashion-mnist", root=tmp_path)
    message = str(caught.value)
    assert [other for other in FILES if other in message] == [file]
    for word in ("fashion-mnist", str(raw), ".gz", "BPLS_DATA", "download=True"):
        assert word in message


def test_a_missing_folder_names_all_four_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        load("mnist", root=tmp_path / "nowhere")
    assert all(file in str(caught.value) for file in FILES)
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_in_the_place_of_a_file_is_an_os_error(tmp_path: Path) -> None:
    raw = write(tmp_path, made())
    (raw / FILES[0]).unlink()
    (raw / FILES[0]).mkdir()
    with pytest.raises(OSError, match=FILES[0]):
        load("mnist", root=tmp_path)


# Downloading


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """Serve a folder at this address."""
    (tmp_path / "mirror").mkdir()
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "mirror"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.thorough
@pytest.mark.usefixtures("torchvision_there")
def test_missing_sets_are_downloaded_by_torchvision_when_asked(mirror: str, tmp_path: Path) -> None:
    sets = {"mnist": made(train=4), "fashion-mnist": made(train=5)}
    for name, files in sets.items():
        write(tmp_path / "mirror", files, name, packed=True)
    code = """
import hashlib, pathlib, sys
import numpy as np
import bpls_fast as bf

address, folder, root = sys.argv[1:]
for name, loader in (
    ("mnist", torchvision.datasets.MNIST),
    ("fashion-mnist", torchvision.datasets.FashionMNIST),
):
    packed = sorted(pathlib.Path(folder, loader.__name__, "raw").glob("*.gz"))
    loader.mirrors = [f"{address}/{loader.__name__}/raw/"]
    loader.resources = [(path.name, hashlib.md5(path.read_bytes()).hexdigest()) for path in packed]
    np.savez(pathlib.Path(root, name), *bf.datasets.load(name, root=root, download=True))
"""
    arguments = (mirror, str(tmp_path / "mirror"), str(tmp_path))
    output_of(run_code(IMPORT_TORCHVISION + code, *arguments, no_proxy="127.0.0.1"))
    for name, files in sets.items():
        with np.load(tmp_path / f"{name}.npz") as arrays:
            assert_same_set(DataSet(*arrays.values()), expected_set(files))
        assert_same_set(load(name, root=tmp_path), expected_set(files))


def test_torchvision_is_not_needed_for_files_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)  # as if it were not installed
    files = made()
    write(tmp_path, files, packed=True)
    assert_same_set(load("mnist", root=tmp_path, download=True), expected_set(files))


def test_download_without_torchvision_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(ImportError, match=r"pip install 'bpls_fast\[torchvision\]'"):
        load("mnist", root=tmp_path, download=True)


def test_download_with_a_torchvision_for_another_torch_says_why_it_does_not_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "operator torchvision::nms does not exist"
    (tmp_path / "torchvision.py").write_text(f"raise RuntimeError({reason!r})", encoding="utf-8")
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match=f"torchvision.*{reason}.*pip install"):
        load("mnist", root=tmp_path, download=True)
