"""The labels of a network's outputs: as arrays without objects, and as text that restores the same array."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpls_fast.network.formats.atomic_files import UnreadableError

__all__ = ["PLAIN_KINDS", "as_plain_array", "from_text", "to_text"]

PLAIN_KINDS = "biufSUMm"  # NumPy's kinds without objects: numbers, strings, dates
# The types of JSON by NumPy's kinds.
TEXT_TYPES = {"b": bool, "i": int, "u": int, "f": float, "U": str}
TEXT_DTYPE = re.compile(r"[<>|](b1|[iu][1248]|f[248]|U[1-9][0-9]{0,5})")
LARGEST = 1 << 24  # bytes of all labels: a file may claim a type far longer than its labels


def as_plain_array(classes: NDArray[Any]) -> NDArray[Any]:
    """Return labels as an array that needs no pickle; objects of one plain type become an array of that type."""
    array = classes
    if classes.dtype.kind == "O" and len({type(label) for label in classes}) == 1:
        array = np.array(classes.tolist())
    if array.dtype.kind not in PLAIN_KINDS or array.tolist() != classes.tolist():
        raise TypeError(
            f"classes have dtype {classes.dtype}; a network file holds numbers, booleans or strings of one type"
        )
    return array


def to_text(classes: NDArray[Any] | None) -> tuple[str, str]:
    """Return labels as a list in JSON, and their NumPy dtype; two empty strings for None."""
    if classes is None:
        return "", ""
    array = as_plain_array(classes)
    if not TEXT_DTYPE.fullmatch(array.dtype.str):
        raise TypeError(
            f"classes have dtype {classes.dtype}; as text they must be numbers, booleans or strings"
        )
    if array.nbytes > LARGEST:
        raise ValueError(f"classes have {array.nbytes} bytes; expected at most {LARGEST}")
    try:
        text = json.dumps(array.tolist(), allow_nan=False, ensure_ascii=False)
        text.encode()
    except ValueError as error:
        raise ValueError(
            "classes hold infinity or half a surrogate pair; expected finite numbers or text"
        ) from error
    return text, array.dtype.str


def from_text(text: str, dtype: str) -> NDArray[Any] | None:
    """Return the array that `to_text` converted."""
    if not text and not dtype:
        return None
    if not TEXT_DTYPE.fullmatch(dtype):
        raise UnreadableError(f"its classes are said to have the type {dtype!r:.40}")
    labels, kind = json.loads(text, parse_constant=_refused), np.dtype(dtype)
    expected = TEXT_TYPES[kind.kind]
    if not isinstance(labels, list) or any(type(label) is not expected for label in labels):
        raise UnreadableError(f"its classes are no list of {expected.__name__}")
    if len(labels) * kind.itemsize > LARGEST:
        raise UnreadableError(f"its classes would take more than {LARGEST} bytes")
    if expected is str:
        # Half of a surrogate pair is not text: this raises UnicodeError, a ValueError.
        "".join(labels).encode()
    array = np.array(labels, kind)
    if array.tolist() != labels:
        raise UnreadableError(f"its classes do not fit the type {dtype}")
    return array


def _refused(constant: str) -> Any:
    raise UnreadableError(f"its classes hold {constant}; expected finite numbers")
