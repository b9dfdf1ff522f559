"""The data sets: the real files against two other readers, made files for every way to be wrong."""

import functools
import gzip
import importlib.util
import os
import re
import shutil
import struct
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from subprocesses import output_of, run_code

from bpls_fast.datasets import DataSet, load, read_idx
from tests.support import images

ROOT = images.ROOT
FOLDERS = {"mnist": "MNIST", "fashion-mnist": "FashionMNIST"}
SETS = list(FOLDERS)
FILES = [
    f"{part}-{content}-ubyte"
    for part in ("train", "t10k")
    for content in ("images-idx3", "labels-idx1")
]

# The public torchvision wheel wants a CUDA torch; beside another one its import stops at these two
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


def skip(reason: str) -> None:
    """Skip the test; where CI runs beside the data, fail it. GitHub's machines have no data."""
    if os.environ.get("CI") == "true" and os.environ.get("GITHUB_ACTIONS") != "true":
        pytest.fail(f"must not be skipped here: {reason}")
    pytest.skip(reason)


@pytest.fixture
def torchvision_there() -> None:
    if not (importlib.util.find_spec("torch") and importlib.util.find_spec("torchvision")):
        skip("torchvision is not installed")


def real_files(name: str) -> list[Path]:
    """Find the files, plain or gzipped; plain where both are there, as the package does."""
    raw = ROOT / FOLDERS[name] / "raw"
    paths = [raw / file if (raw / file).is_file() else raw / f"{file}.gz" for file in FILES]
    if not all(path.is_file() for path in paths):
        skip(f"{raw} has no complete {name}; BPLS_DATA can name another folder than {ROOT}")
    return paths


def unzipped(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def idx(values: np.ndarray, kind: int = 0x08) -> bytes:
    return struct.pack(f">4B{values.ndim}I", 0, 0, kind, values.ndim, *values.shape) + bytes(values)


def header(*shape: int) -> bytes:
    return struct.pack(f">4B{len(shape)}I", 0, 0, 0x08, len(shape), *shape)


def made(train: int = 7, test: int = 3) -> dict[str, bytes]:
    """Make the four files of a small set."""
    rng = np.random.default_rng(0)
    values = [
        rng.integers(0, high, shape, dtype=np.uint8)
        for rows in (train, test)
        for high, shape in ((256, (rows, 28, 28)), (10, (rows,)))
    ]
    return dict(zip(FILES, map(idx, values), strict=True))


def write(root: Path, files: dict[str, bytes], name: str = "mnist", packed: bool = False) -> Path:
    raw = root / FOLDERS[name] / "raw"
    raw.mkdir(parents=True)
    for file, content in files.items():
        if packed:
            (raw / f"{file}.gz").write_bytes(gzip.compress(content))
        else:
            (raw / file).write_bytes(content)
    return raw


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


def assert_refused(path: Path, *words: str) -> None:
    """Expect a ValueError that names the file and says each of the words."""
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        read_idx(path)
    for word in words:
        assert word in str(caught.value)


# The sets


@pytest.mark.parametrize("name", SETS)
def test_a_real_set_has_its_rows_and_columns_and_every_class(name: str) -> None:
    real_files(name)
    data = load(name, root=ROOT)
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
    assert_same_set(load(name, root=ROOT), expected_set(files))


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
    output = output_of(run_code(IMPORT_TORCHVISION + code, str(ROOT), str(tmp_path)))
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


# A set whose files do not fit


def assert_set_refused(root: Path, file: str, content: bytes, *words: str) -> None:
    """Expect that a set with this one file, plain or gzipped, is a ValueError that names it."""
    for packed in (False, True):
        shutil.rmtree(root / "MNIST", ignore_errors=True)
        raw = write(root, made() | {file: content}, packed=packed)
        with pytest.raises(ValueError, match=re.escape(str(raw / file))) as caught:
            load("mnist", root=root)
        for word in words:
            assert word in str(caught.value)


@pytest.mark.parametrize("part", ["train", "t10k"])
def test_labels_in_the_place_of_images_are_recognised(part: str, tmp_path: Path) -> None:
    labels = made()[f"{part}-labels-idx1-ubyte"]
    words = ("1 dimension", "like labels", "expected images with 3")
    assert_set_refused(tmp_path, f"{part}-images-idx3-ubyte", labels, *words)


@pytest.mark.parametrize("part", ["train", "t10k"])
def test_images_in_the_place_of_labels_are_recognised(part: str, tmp_path: Path) -> None:
    values = made()[f"{part}-images-idx3-ubyte"]
    words = ("3 dimension", "like images", "expected labels with 1")
    assert_set_refused(tmp_path, f"{part}-labels-idx1-ubyte", values, *words)


@pytest.mark.parametrize("shape", [(7, 784), (7, 1, 28, 28)])
def test_another_number_of_dimensions_is_recognised(shape: tuple[int, ...], tmp_path: Path) -> None:
    content = idx(np.zeros(shape, np.uint8))
    assert_set_refused(tmp_path, FILES[0], content, f"{len(shape)} dimension", "expected images")


@pytest.mark.parametrize("shape", [(7, 28, 27), (7, 32, 32), (7, 784, 1), (28, 28, 7)])
def test_images_of_another_size_are_recognised(shape: tuple[int, ...], tmp_path: Path) -> None:
    assert_set_refused(tmp_path, FILES[0], idx(np.zeros(shape, np.uint8)), str(shape), "28 x 28")


@pytest.mark.parametrize("file", FILES[:2])
@pytest.mark.parametrize("rows", [6, 8])
def test_images_and_labels_of_different_length_are_recognised(
    file: str, rows: int, tmp_path: Path
) -> None:
    other = made(train=rows)[file]
    both = (*FILES[:2], f"has {rows} ", "has 7 ")
    assert_set_refused(tmp_path, file, other, *both)


@pytest.mark.parametrize("label", [10, 255])
def test_a_label_that_is_no_class_is_named_with_its_row(label: int, tmp_path: Path) -> None:
    labels = np.array([0, 9, 3, label, 1, label, 0], np.uint8)
    assert_set_refused(tmp_path, FILES[1], idx(labels), f"label {label} in row 3", "0 to 9")


@pytest.mark.parametrize("file", FILES)
def test_a_truncated_file_of_a_set_is_named(file: str, tmp_path: Path) -> None:
    assert_set_refused(tmp_path, file, made()[file][:-1], "truncated")


@pytest.mark.parametrize("file", FILES)
def test_a_file_of_a_set_with_trailing_bytes_is_named(file: str, tmp_path: Path) -> None:
    assert_set_refused(tmp_path, file, made()[file] + b"\0", "too long")


# One file


def small_shapes() -> st.SearchStrategy[tuple[int, ...]]:
    return hnp.array_shapes(min_dims=1, max_dims=5, min_side=1, max_side=6)


@given(values=hnp.arrays(np.uint8, small_shapes()), packed=st.booleans())
def test_read_idx_gives_the_array_that_was_written(
    values: np.ndarray, packed: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("idx") / "values"
    path.write_bytes(gzip.compress(idx(values)) if packed else idx(values))
    got = read_idx(path)
    assert got.dtype == np.uint8
    np.testing.assert_array_equal(got, values, strict=True)


def test_gzip_is_recognised_by_content_whatever_the_name(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.uint8).reshape(2, 3)
    (tmp_path / "plain.gz").write_bytes(idx(values))
    (tmp_path / "packed").write_bytes(gzip.compress(idx(values)))
    np.testing.assert_array_equal(read_idx(tmp_path / "plain.gz"), values)
    np.testing.assert_array_equal(read_idx(str(tmp_path / "packed")), values)


def test_a_gzip_of_several_members_is_one_file(tmp_path: Path) -> None:
    values = np.arange(60, dtype=np.uint8)
    content = idx(values)
    path = tmp_path / "members.gz"
    path.write_bytes(gzip.compress(content[:10]) + gzip.compress(content[10:]))
    np.testing.assert_array_equal(read_idx(path), values)


def values_or_refusal(path: Path) -> np.ndarray | str:
    try:
        return read_idx(path)
    except ValueError as error:
        return str(error)


SMALL = idx(np.random.default_rng(0).integers(0, 256, (3, 4, 5), dtype=np.uint8))


@pytest.mark.parametrize("content", [SMALL, gzip.compress(SMALL)], ids=["plain", "gzipped"])
def test_a_file_cut_at_any_byte_is_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut"
    for size in range(len(content)):
        path.write_bytes(content[:size])
        assert_refused(path)


@pytest.mark.parametrize("content", [SMALL, gzip.compress(SMALL)], ids=["plain", "gzipped"])
@pytest.mark.parametrize("trailing", [b"\1", b"\0\0\1", b"\x1f\x8b", gzip.compress(b"\0"), SMALL])
def test_a_file_with_trailing_bytes_is_named(
    content: bytes, trailing: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "long"
    path.write_bytes(content + trailing)
    assert_refused(path)


def test_a_gzip_with_any_bit_flipped_is_refused_or_gives_the_same_array(tmp_path: Path) -> None:
    packed, path = gzip.compress(SMALL), tmp_path / "flipped.gz"
    path.write_bytes(packed)
    values = read_idx(path)
    refused = 0
    for bit in range(8 * len(packed)):
        flipped = bytearray(packed)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        got = values_or_refusal(path)
        if isinstance(got, str):
            assert str(path) in got
            refused += 1
        else:
            np.testing.assert_array_equal(got, values)
    # Not the data's: notes in gzip's header of ten bytes, and what fills the last byte of the stream.
    assert refused >= 8 * (len(packed) - 10) - 7


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ("0 bytes", "header")),
        (b"\0\0\x08", ("3 bytes", "header")),
        (b"<!DOCTYPE html>", ("not an IDX file", "3c 21 44 4f")),
        (b"\x08\0\0\x01" + SMALL[4:], ("not an IDX file", "08 00 00 01")),
        (b"\0\0\x07\x01\0\0\0\x01\0", ("not an IDX file", "00 00 07 01")),
        (b"\0\0\x0a\x01\0\0\0\x01\0", ("not an IDX file", "00 00 0a 01")),
        (idx(np.zeros(3, ">f4"), 0x0D), ("float32", "0x0d", "expected uint8")),
        (idx(np.zeros(3, ">i2"), 0x0B), ("int16", "0x0b", "expected uint8")),
        (b"\0\0\x08\0\0", ("0 dimensions", "1 to 32")),
        (header(*[1] * 33) + b"\0", ("33 dimensions", "1 to 32")),
        (b"\0\0\x08\xff" + bytes(2000), ("255 dimensions", "1 to 32")),
        (header(2, 3)[:-1], ("truncated", "11 bytes", "header of 12")),
        (header(0, 28, 28), ("empty", "(0, 28, 28)")),
        (header(0, *[2**32 - 1] * 3), ("empty",)),
        (header(2, 3) + bytes(5), ("truncated", "5 bytes", "expected 6", "(2, 3)")),
        (header(2, 3) + bytes(7), ("too long", "the 6 ", "(2, 3)")),
    ],
    ids=lambda value: None if isinstance(value, bytes) else "-".join(value),
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
def test_what_is_not_idx_of_bytes_is_refused_with_what_came_and_what_was_expected(
    content: bytes, words: tuple[str, ...], packed: bool, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(content) if packed else content)
    assert_refused(path, *words)


@given(content=st.binary(max_size=40), start=st.sampled_from([b"", b"\0\0\x08", b"\x1f\x8b\x08"]))
def test_any_bytes_are_an_array_that_says_the_same_or_a_named_error(
    content: bytes, start: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("idx") / "any"
    path.write_bytes(start + content)
    got = values_or_refusal(path)
    if isinstance(got, str):
        assert str(path) in got
    else:
        assert idx(got) == unzipped(path)


@pytest.mark.parametrize("name", ["missing", "."])
def test_no_file_is_an_os_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(OSError):  # noqa: PT011
        read_idx(tmp_path / name)


# Memory

LITTLE = 8 << 20


def peak_of_refusing(path: Path, *words: str) -> int:
    tracemalloc.start()
    try:
        assert_refused(path, *words)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "shape", [(2**32 - 1,), (2**32 - 1,) * 2, (2**32 - 1,) * 32, (60_000, 28, 2800)]
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
def test_a_header_of_gigabytes_and_more_takes_no_memory(
    shape: tuple[int, ...], packed: bool, tmp_path: Path
) -> None:
    path, content = tmp_path / "absurd", header(*shape) + bytes(1000)
    path.write_bytes(gzip.compress(content) if packed else content)
    words = ("truncated", "1000 bytes", str(np.prod(shape, dtype=object)))
    assert peak_of_refusing(path, *words) < LITTLE


def test_a_gzip_that_unzips_to_more_than_its_header_says_is_not_unzipped(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(header(10) + bytes(8 * LITTLE), compresslevel=1))
    assert peak_of_refusing(path, "too long") < LITTLE


def test_a_gzip_that_says_that_it_is_huge_is_no_set(tmp_path: Path) -> None:
    for file, shape in zip(FILES, ((100_000, 28, 28), (10**8,)), strict=False):
        content = header(*shape) + bytes(8 * LITTLE)
        tracemalloc.start()
        try:
            assert_set_refused(tmp_path, file, content, str(shape), "at most 60000")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < LITTLE
