"""Messages in the wire format of Protocol Buffers, as far as ONNX needs it.

A reader names the fields it wants, and how often each may occur, so that a message takes no more memory than its bytes;
other fields are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from bpls_fast.network.formats.atomic_files import UnreadableError

__all__ = ["BYTES", "FLOAT", "INT", "encode", "fields", "message"]

INT, EIGHT_BYTES, BYTES, FLOAT = 0, 1, 2, 5  # the wire types
FIXED = {EIGHT_BYTES: 8, FLOAT: 4}


def encode(*content: tuple[int, int | float | str | bytes]) -> bytes:
    """Return the message of these fields, each a number and a value."""
    return b"".join(_field(number, value) for number, value in content)


def _field(number: int, value: int | float | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3 | INT) + _varint(value % 2**64)
    if isinstance(value, float):
        return _varint(number << 3 | FLOAT) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | BYTES) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    """Return a number >= 0 in groups of seven bits, the lowest first; the eighth bit says that more follow."""
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    return bytes([*data, value])


def fields(data: memoryview) -> Iterator[tuple[int, int, Any]]:
    """Yield the fields of a message: number, wire type, value (a signed int, a float, or a view of bytes)."""
    place = 0
    while place < len(data):
        key, place = _read_varint(data, place)
        number, wire = key >> 3, key & 7
        if wire == INT:
            value, place = _read_varint(data, place)
            yield number, wire, value - 2**64 if value >= 2**63 else value
            continue
        if wire == BYTES:
            length, place = _read_varint(data, place)
        elif wire in FIXED:
            length = FIXED[wire]
        else:
            raise UnreadableError(f"a field has wire type {wire}; ONNX does not use it")
        if number == 0 or length > len(data) - place:
            raise UnreadableError(
                f"field {number} has {length} bytes; {len(data) - place} are left"
            )
        content = data[place : place + length]
        yield number, wire, struct.unpack("<f", content)[0] if wire == FLOAT else content
        place += length


def message(data: memoryview, wanted: Mapping[int, tuple[int, int]]) -> dict[int, list[Any]]:
    """Return a list of values for each wanted field; `wanted` has their wire types and largest counts."""
    found: dict[int, list[Any]] = {number: [] for number in wanted}
    for number, wire, value in fields(data):
        if number not in wanted:
            continue
        expected, largest = wanted[number]
        if wire != expected or len(found[number]) == largest:
            raise UnreadableError(
                f"field {number} has wire type {wire} or occurs more than {largest} times; expected type {expected}"
            )
        found[number].append(value)
    return found


def _read_varint(data: memoryview, place: int) -> tuple[int, int]:
    """Return the number at a place, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        if place == len(data):
            break
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >= 2**64:
                break
            return value, place
    raise UnreadableError("a number is cut off or longer than 64 bits")
