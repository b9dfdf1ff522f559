"""Networks as C: one header with the weights and the forward pass, for C99 and C++, without allocation.

Weights are stored neuron by neuron, so that each neuron is one pass over the inputs. <math.h> is needed only for
activations with exponentials.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpls_fast.network.formats.atomic_files import Path, write_atomically
from bpls_fast.network.formats.parts import Layer, Parts

__all__ = ["write"]

TYPES = {"float32": ("float", "f"), "float64": ("double", "")}

# In these templates NAME is the prefix of all names, REAL the type of numbers, and a name that ends in an underscore a
# function of <math.h>, which gets the suffix of its type. An activation overwrites z[0] to z[n - 1].
EACH = "for (int i = 0; i < n; ++i) z[i] = {};"
ACTIVATIONS = {
    "sigmoid": """\
    for (int i = 0; i < n; ++i) {
        const REAL e = exp_(-fabs_(z[i]));
        z[i] = (z[i] < 0 ? e : 1) / (1 + e);
    }""",
    "tanh": "    " + EACH.format("tanh_(z[i])"),
    "relu": "    " + EACH.format("z[i] > 0 ? z[i] : 0"),
    "leaky_relu": "    " + EACH.format("z[i] > 0 ? z[i] : (REAL)0.01 * z[i]"),
    "elu": "    " + EACH.format("z[i] < 0 ? expm1_(z[i]) : z[i]"),
    "softmax": """\
    REAL largest = z[0], sum = 0;
    for (int i = 1; i < n; ++i) largest = z[i] > largest ? z[i] : largest;
    for (int i = 0; i < n; ++i) {
        z[i] = exp_(z[i] - largest);
        sum += z[i];
    }
    for (int i = 0; i < n; ++i) z[i] /= sum;""",
    "softplus": "    " + EACH.format("(z[i] > 0 ? z[i] : 0) + log1p_(exp_(-fabs_(z[i])))"),
    "softminus": "    " + EACH.format("(z[i] < 0 ? z[i] : 0) - log1p_(exp_(-fabs_(z[i])))"),
}

TEMPLATE = """\
/* {comment} */
#ifndef GUARD
#define GUARD

{math}
enum {{ NAME_inputs = INPUTS, NAME_outputs = OUTPUTS }};

{arrays}

{code}

#endif /* GUARD */
"""
COMMENT = """\
A network of bpls_fast: SUMMARY.
 * NAME_forward(x, y) reads NAME_inputs numbers x and writes NAME_outputs numbers y; NAME_decision(x, y) writes them
 * before the last activation. The functions write to y and their own stack only."""
COMMENT_OF_CLASSES = """
 * NAME_predict(x) returns the number of a class; NAME_classes[number] is its label."""
PREDICT = """\
static const char *const NAME_classes[NAME_outputs] = {LABELS};

static inline int NAME_predict(const REAL *x) {
    REAL y[NAME_outputs];
    int best = 0;
    NAME_decision(x, y);
    for (int j = 1; j < NAME_outputs; ++j) best = y[j] > y[best] ? j : best;
    return best;
}"""
CLIP = """\
static inline void NAME_clip(const REAL *x, REAL *z) {
    for (int i = 0; i < NAME_inputs; ++i) {
        const REAL above = x[i] < NAME_lower[i] ? NAME_lower[i] : x[i];
        z[i] = above > NAME_upper[i] ? NAME_upper[i] : above;
    }
}"""
MATH = re.compile(r"\b([a-z0-9]+)_\(")


def write(path: Path, parts: Parts, name: str, dtype: str) -> None:
    """Write the header; the file is written completely or not at all."""
    if not isinstance(name, str) or not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name):
        raise ValueError(f"name is {name!r}; expected a C identifier that begins with a letter")
    if dtype not in TYPES:
        raise ValueError(f"dtype is {dtype!r}; expected 'float32' or 'float64'")
    parts.check_activations(ACTIVATIONS, "the C header")
    text = _header(parts, name, dtype)
    with write_atomically(path) as file:
        file.write(text.encode())


def _header(parts: Parts, name: str, dtype: str) -> str:
    real, suffix = TYPES[dtype]
    layers = parts.layers(dtype, parts.input_scale or 1.0)
    used = [key for key in ACTIVATIONS if key in parts.activations]
    limits = parts.limits(dtype)
    functions = [_dense(parts.bias), *(_activation(key) for key in used)]
    functions += [_decision(layers)] if limits is None else [CLIP, _decision(layers, clips=True)]
    functions.append(_forward(layers[-1].activation))
    comment, labels = COMMENT, ""
    if parts.classes is not None:
        comment += COMMENT_OF_CLASSES
        labels = ", ".join(_quoted(str(label)) for label in parts.classes.tolist())
        functions.append(PREDICT)
    code = "\n\n".join(functions)
    math = "#include <math.h>\n" if MATH.search(code) else ""
    code = MATH.sub(rf"\1{suffix}(", code)
    arrays = "\n".join([*_limits(limits, suffix), *_arrays(layers, suffix)])
    text = TEMPLATE.format(comment=comment, math=math, arrays=arrays, code=code)
    sizes = "-".join(str(size) for size in parts.layer_sizes)
    words = {
        "NAME": name,
        "GUARD": f"BPLS_{name.upper()}_H",
        "REAL": real,
        "INPUTS": str(parts.layer_sizes[0]),
        "OUTPUTS": str(parts.layer_sizes[-1]),
        "SUMMARY": f"{sizes}, {', '.join(parts.activations)}",
        "LABELS": labels,
    }
    return re.sub("|".join(words), lambda word: words[word[0]], text)


def _limits(limits: NDArray[Any] | None, suffix: str) -> Iterator[str]:
    """Yield the limits of the inputs; the largest number stands for infinity, which C has no literal for."""
    if limits is None:
        return
    largest = np.finfo(limits.dtype).max
    for name, values in zip(("lower", "upper"), limits, strict=True):
        yield _array(f"NAME_{name}", np.clip(values, -largest, largest), suffix)


def _arrays(layers: Sequence[Layer], suffix: str) -> Iterator[str]:
    for index, layer in enumerate(layers):
        yield _array(f"NAME_weight_{index}", layer.weight.T.ravel(), suffix)
        if layer.bias is not None:
            yield _array(f"NAME_bias_{index}", layer.bias, suffix)


def _array(name: str, values: NDArray[Any], suffix: str) -> str:
    """Return an array in C; every number is the shortest decimal that reads back as itself."""
    numbers = [f"{value!s}{suffix}" for value in values]
    lines = [", ".join(numbers[first : first + 8]) for first in range(0, len(numbers), 8)]
    body = ",\n    ".join(lines)
    return f"static const REAL {name}[{len(numbers)}] = {{\n    {body}}};"


def _dense(bias: bool) -> str:
    given, start = ("const REAL *bias, ", "bias[j]") if bias else ("", "0")
    return f"""\
static inline void NAME_dense(const REAL *weight, {given}const REAL *x, int n, int m, REAL *z) {{
    for (int j = 0; j < m; ++j, weight += n) {{
        REAL sum = {start};
        for (int i = 0; i < n; ++i) sum += weight[i] * x[i];
        z[j] = sum;
    }}
}}"""


def _activation(activation: str) -> str:
    body = ACTIVATIONS[activation]
    return f"static inline void NAME_{activation}(REAL *z, int n) {{\n{body}\n}}"


def _decision(layers: Sequence[Layer], *, clips: bool = False) -> str:
    """Return the function that runs all layers; hidden values alternate between two arrays."""
    widths = [layer.weight.shape[1] for layer in layers[:-1]]
    room = [max(widths[parity::2]) for parity in (0, 1) if widths[parity::2]]
    lines = (
        [f"    REAL {', '.join(f'h{parity}[{n}]' for parity, n in enumerate(room))};"]
        if room
        else []
    )
    source = "x"
    if clips:
        lines += ["    REAL c[NAME_inputs];", "    NAME_clip(x, c);"]
        source = "c"
    for index, (weight, bias, activation) in enumerate(layers):
        n, m = weight.shape
        last = index == len(layers) - 1
        target = "y" if last else f"h{index % 2}"
        biases = "" if bias is None else f"NAME_bias_{index}, "
        lines.append(f"    NAME_dense(NAME_weight_{index}, {biases}{source}, {n}, {m}, {target});")
        if not last and activation != "identity":
            lines.append(f"    NAME_{activation}({target}, {m});")
        source = target
    body = "\n".join(lines)
    return f"static inline void NAME_decision(const REAL *x, REAL *y) {{\n{body}\n}}"


def _forward(activation: str) -> str:
    last = "" if activation == "identity" else f"    NAME_{activation}(y, NAME_outputs);\n"
    return f"""\
static inline void NAME_forward(const REAL *x, REAL *y) {{
    NAME_decision(x, y);
{last}}}"""


def _quoted(text: str) -> str:
    """Return a string literal in UTF-8; special bytes are written as three octal digits."""
    plain = (chr(byte) if _is_plain(byte) else f"\\{byte:03o}" for byte in text.encode())
    return f'"{"".join(plain)}"'


def _is_plain(byte: int) -> bool:
    return 32 <= byte < 127 and chr(byte) not in '"\\?'  # ?? begins a trigraph
