"""Image sets whose files do not fit together are refused with the name of the file."""

import re
import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from bpls_fast.datasets import load
from tests.support.idx_files import FILES, LITTLE, header, idx, made, write

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
