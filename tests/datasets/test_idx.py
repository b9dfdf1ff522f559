"""IDX files: what is read, what is refused, and how little memory a hostile file takes."""

import gzip
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bpls_fast.datasets import read_idx
from tests.support.idx_files import LITTLE, header, idx, unzipped


def assert_refused(path: Path, *words: str) -> None:
    """Expect a ValueError that names the file and says each of the words."""
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        read_idx(path)
    for word in words:
        assert word in str(caught.value)


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
