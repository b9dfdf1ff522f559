"""Network files: a `.npz` archive of plain arrays and a header in JSON. Nothing in it is executed.

Everything is checked before it is used: the members of the archive, their sizes before they are read, the format
version, and a checksum over shape, dtype and bytes of every array.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
import zlib
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from bpls_fast.network.formats import atomic_files, labels
from bpls_fast.network.formats.atomic_files import UnreadableError
from bpls_fast.network.formats.parts import Parts

__all__ = ["read", "write"]

FORMAT = "bpls_fast.network"
VERSION = 1
LARGEST_HEADER = 1 << 20  # bytes
LIMITS = "input_limits"  # the array of a network that has limits
# The header of a `.npy` file: dtype, order and shape of an array of numbers, strings or dates.
NPY_HEADER = re.compile(
    rb"\{'descr': '([<>|][biufSUMm]\d+(?:\[\w+\])?)', 'fortran_order': (True|False), "
    rb"'shape': \(([\d, ]*)\), \} *\n"
)
SIZE = re.compile(rb"\d+")

Header = dict[str, Any]


def write(path: atomic_files.Path, parts: Parts) -> None:
    """Write a network; the file is written completely or not at all."""
    arrays = {f"weights_{layer}": W for layer, W in enumerate(parts.weights)}
    if parts.input_limits is not None:
        arrays[LIMITS] = parts.input_limits
    if parts.classes is not None:
        arrays["classes"] = labels.as_plain_array(parts.classes)
    header: Header = {
        "format": FORMAT,
        "version": VERSION,
        "layer_sizes": list(parts.layer_sizes),
        "activations": list(parts.activations),
        "bias": parts.bias,
        "input_scale": parts.input_scale,
        "arrays": {name: _description(array) for name, array in arrays.items()},
    }
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with atomic_files.write_atomically(path) as file:
        np.savez(file, allow_pickle=False, header=text, **arrays)


def read(path: atomic_files.Path) -> Parts:
    """Read what `write` wrote; raise ValueError for any other file."""
    with atomic_files.open_to_read(path) as file, zipfile.ZipFile(file) as archive:
        return _read(_Members(archive, file))


def _read(members: _Members) -> Parts:
    header = _read_header(members)
    arrays = {
        name: _read_array(members, name, described) for name, described in header["arrays"].items()
    }
    classes, limits = arrays.pop("classes", None), arrays.pop(LIMITS, None)
    names = [f"weights_{layer}" for layer in range(len(arrays))]
    if set(arrays) != set(names):
        raise UnreadableError(f"its arrays are {sorted(arrays)}; expected {names}")
    return Parts(
        header["layer_sizes"],
        header["activations"],
        header["bias"],
        header["input_scale"],
        [arrays[name] for name in names],
        classes,
        limits,
    )


def _read_header(members: _Members) -> Header:
    if "header.npy" not in members.archive.namelist():
        raise UnreadableError("it has no header; expected a file that Network.save wrote")
    if members.archive.getinfo("header.npy").file_size > LARGEST_HEADER:
        raise UnreadableError(f"its header is longer than {LARGEST_HEADER} bytes")
    text = members.array("header")
    header = json.loads(text.astype(np.uint8, casting="no").tobytes())
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise UnreadableError(f"its header does not name the format {FORMAT}")
    if header.get("version") != VERSION:
        raise UnreadableError(
            f"its format version is {header.get('version')!r:.40}; this release reads version {VERSION}"
        )
    return header


def _read_array(members: _Members, name: str, described: Any) -> NDArray[Any]:
    array = members.array(name)
    is_float = name.startswith("weights_") or name == LIMITS
    kinds = "f" if is_float else labels.PLAIN_KINDS
    # As text, in which 4.0 is not 4.
    if array.dtype.kind not in kinds or _text(_description(array)) != _text(described):
        raise UnreadableError(
            f"{name} is not what the header says: its shape, type or checksum differs"
        )
    return array


class _Members:
    """The arrays of an uncompressed archive; together they are not larger than the file."""

    def __init__(self, archive: zipfile.ZipFile, file: BinaryIO) -> None:
        self.archive, self.size = archive, atomic_files.file_size(file)
        total = sum(member.compress_size for member in archive.infolist())
        if total > self.size:
            raise UnreadableError(
                f"its arrays are said to have {total} bytes, the file has {self.size}: they overlap"
            )

    def array(self, name: str) -> NDArray[Any]:
        member = self.archive.getinfo(f"{name}.npy")
        if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
            raise UnreadableError(
                f"{name} has {member.file_size} bytes in {member.compress_size}; expected an array, not compressed"
            )
        return _array(self.archive.read(member))


def _array(data: bytes) -> NDArray[Any]:
    """Return the array of a `.npy` file. NumPy's own reader would first allocate what the file claims to hold."""
    start = 10 + int.from_bytes(data[8:10], "little")
    head = NPY_HEADER.fullmatch(data[10:start])
    if data[:8] != b"\x93NUMPY\1\0" or head is None:
        raise UnreadableError("an array has no header as NumPy writes it")
    dtype, shape = np.dtype(head[1].decode()), tuple(int(size) for size in SIZE.findall(head[3]))
    if len(data) - start != math.prod(shape) * dtype.itemsize:
        raise UnreadableError(
            f"an array is said to be {dtype} of shape {shape}; it has {len(data) - start} bytes"
        )
    array: NDArray[Any] = np.frombuffer(data[start:], dtype).copy()
    return array.reshape(shape, order="F" if head[2] == b"True" else "C")


def _description(array: NDArray[Any]) -> dict[str, Any]:
    """Return the header's entry for an array; the checksum covers shape, dtype and bytes."""
    shape, dtype = list(array.shape), array.dtype.str
    start = zlib.crc32(f"{shape} {dtype}".encode())
    return {"shape": shape, "dtype": dtype, "crc32": zlib.crc32(array.tobytes(), start)}


def _text(described: Any) -> str:
    return json.dumps(described, sort_keys=True)
