"""Networks as safetensors: the length of a JSON header, the header, and the weights in float64, layer by layer.

The limits of the inputs, if the network has them, are the last tensor.

The weights start at a multiple of 8 bytes and have no gaps, so that a reader can map the file into memory and use them
in place.
"""

from __future__ import annotations

import json
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from bpls_fast.network.formats import atomic_files, labels
from bpls_fast.network.formats.atomic_files import UnreadableError
from bpls_fast.network.formats.parts import Layer, Parts

__all__ = ["read", "write"]

FORMAT = "bpls_fast.network"
VERSION = "1"
LARGEST_HEADER = 1 << 20  # bytes
LIMITS = "input_limits"  # the tensor of a network that has limits
METADATA = ("format", "version", "activations", "input_scale", "classes", "classes_dtype")


def write(path: atomic_files.Path, parts: Parts) -> None:
    """Write a network; the file is written completely or not at all."""
    header = _header(parts)
    with atomic_files.write_atomically(path) as file:
        file.write(len(header).to_bytes(8, "little"))
        file.write(header)
        for W in parts.weights:
            # The bias is the last row: its bytes follow those of the weights.
            file.write(np.ascontiguousarray(W, "<f8").tobytes())
        if parts.input_limits is not None:
            file.write(np.ascontiguousarray(parts.input_limits, "<f8").tobytes())


def read(path: atomic_files.Path) -> Parts:
    """Read what `write` wrote; raise ValueError for any other file."""
    with atomic_files.open_to_read(path) as file:
        return _read(file)


def _header(parts: Parts) -> bytes:
    classes, dtype = labels.to_text(parts.classes)
    scale = "" if parts.input_scale is None else repr(parts.input_scale)
    values = (FORMAT, VERSION, ",".join(parts.activations), scale, classes, dtype)
    entries: dict[str, Any] = {"__metadata__": dict(zip(METADATA, values, strict=True))}
    shapes: dict[str, list[int]] = {}
    for index, W in enumerate(parts.weights):
        shapes[f"layers.{index}.weight"] = [len(W) - parts.bias, W.shape[1]]
        if parts.bias:
            shapes[f"layers.{index}.bias"] = [W.shape[1]]
    if parts.input_limits is not None:
        shapes[LIMITS] = list(parts.input_limits.shape)
    offset = 0
    for name, shape in shapes.items():
        end = offset + 8 * int(np.prod(shape))
        entries[name] = {"dtype": "F64", "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    if len(text) > LARGEST_HEADER - 8:
        raise ValueError(
            f"layers and classes take a header of {len(text)} bytes; expected at most {LARGEST_HEADER - 8}"
        )
    return text + b" " * (-len(text) % 8)


def _read(file: BinaryIO) -> Parts:
    size = atomic_files.file_size(file)
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(LARGEST_HEADER, size - 8) or length % 8:
        raise UnreadableError(
            f"its header is said to have {length} bytes; "
            f"expected a multiple of 8, at most {LARGEST_HEADER} and what the file has"
        )
    header = json.loads(file.read(length).decode(), object_pairs_hook=_no_duplicates)
    if not isinstance(header, dict):
        raise UnreadableError("its header is not a JSON object")
    metadata = _metadata(header.pop("__metadata__", None))
    tensors = _Tensors(header, file.read(size - 8 - length))
    layers = [
        Layer(
            tensors.take(f"layers.{index}.weight", 2),
            tensors.take(f"layers.{index}.bias", 1) if f"layers.{index}.bias" in header else None,
            activation,
        )
        for index, activation in enumerate(metadata["activations"].split(","))
    ]
    limits = tensors.take(LIMITS, 2) if LIMITS in header else None
    tensors.check_all_taken()
    if len({layer.bias is None for layer in layers}) > 1:
        raise UnreadableError("some of its layers have a bias and some have none")
    classes = labels.from_text(metadata["classes"], metadata["classes_dtype"])
    return Parts.from_layers(layers, _scale(metadata["input_scale"]), classes, limits)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise UnreadableError("its header has a name twice")
    return entries


def _metadata(metadata: Any) -> dict[str, str]:
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise UnreadableError(f"its metadata does not name the format {FORMAT}")
    if metadata.get("version") != VERSION:
        raise UnreadableError(
            f"its format version is {metadata.get('version')!r:.40}; this release reads version {VERSION!r}"
        )
    for name in METADATA:
        if name not in metadata:
            raise UnreadableError(f"its metadata has no {name}")
    for name, value in metadata.items():
        if not isinstance(value, str):
            raise UnreadableError(f"its metadata has {value!r:.40} for {name!r:.40}; expected text")
    return metadata


def _scale(text: str) -> float | None:
    if not text:
        return None
    scale = float(text)
    if repr(scale) != text:
        raise UnreadableError(
            f"its input_scale is {text!r:.40}; expected a number as Python writes it"
        )
    return scale


class _Tensors:
    """The tensors of a file, read one after the other in the order of their bytes."""

    def __init__(self, entries: dict[str, Any], data: bytes) -> None:
        self.entries, self.data, self.offset = entries, data, 0

    def take(self, name: str, dimensions: int) -> NDArray[np.float64]:
        if name not in self.entries:
            raise UnreadableError(f"it has no {name}")
        entry = self.entries.pop(name)
        shape = entry.get("shape") if isinstance(entry, dict) else None
        if (
            not isinstance(shape, list)
            or len(shape) != dimensions
            or not all(type(n) is int and 0 < n <= len(self.data) for n in shape)
        ):
            raise UnreadableError(
                f"{name} has the shape {shape!r:.60}; expected {dimensions} sizes"
            )
        count = int(np.prod(shape, dtype=object))
        end = self.offset + 8 * count
        expected = {"dtype": "F64", "shape": shape, "data_offsets": [self.offset, end]}
        # As text, in which 8.0 is not 8.
        if json.dumps(entry, sort_keys=True) != json.dumps(expected, sort_keys=True):
            raise UnreadableError(
                f"{name} is {str(entry)[:120]}; expected F64 with data_offsets {[self.offset, end]}"
            )
        if end > len(self.data):
            raise UnreadableError(f"{name} ends after {end} bytes; the file has {len(self.data)}")
        array = np.frombuffer(self.data, "<f8", count, self.offset).reshape(shape)
        self.offset = end
        return array.astype(np.float64, copy=False)

    def check_all_taken(self) -> None:
        if self.entries or self.offset != len(self.data):
            raise UnreadableError(
                f"it has {len(self.entries)} tensors and {len(self.data) - self.offset} bytes "
                "more than its layers"
            )
