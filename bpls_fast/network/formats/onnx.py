"""Networks as ONNX: a chain of Gemm nodes and activations, written and read without the onnx package.

The limits of the inputs, if the network has them, are a Max and a Min node in front of the chain.

The reader accepts such chains from other tools, too: Gemm, or MatMul and Add, with float32 or float64 weights inside
the file. It refuses any other node, attribute or location of weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpls_fast.network.formats import atomic_files, labels
from bpls_fast.network.formats.atomic_files import UnreadableError
from bpls_fast.network.formats.parts import Layer, Parts
from bpls_fast.network.formats.protobuf import BYTES, FLOAT, INT, encode, fields, message

__all__ = ["read", "write"]

IR_VERSION, OPSET = 7, 13  # from 2020: every runtime since then reads them
OLDEST_OPSET = 7  # before it Gemm and Add had other rules
LARGEST = 2**31 - 1  # bytes of a protobuf message
TYPES = {1: "<f4", 11: "<f8"}  # tensor types of weights; an input may be of bytes as well
UINT8 = 2
# The fields of a tensor: dims, type, segment, floats, raw data, doubles, and two of data in other files.
TENSOR = {
    1: (INT, 2),
    2: (INT, 1),
    3: (BYTES, 0),
    4: (BYTES, 1),
    9: (BYTES, 1),
    10: (BYTES, 1),
    13: (BYTES, 99),
    14: (INT, 1),
}
INPUTS, OUTPUTS = "inputs", "outputs"

Attributes = Mapping[str, int | float]
Node = tuple[str, Attributes]

ACTIVATIONS: dict[str, list[Node]] = {
    "identity": [],
    "sigmoid": [("Sigmoid", {})],
    "tanh": [("Tanh", {})],
    "relu": [("Relu", {})],
    "leaky_relu": [("LeakyRelu", {"alpha": 0.01})],
    "elu": [("Elu", {"alpha": 1.0})],
    "softmax": [("Softmax", {"axis": -1})],
    "softplus": [("Softplus", {})],
    "softminus": [("Neg", {}), ("Softplus", {}), ("Neg", {})],
}
NAMES = {tuple(op for op, _ in nodes): name for name, nodes in ACTIVATIONS.items()}
# The accepted values of every attribute, the default first. Numbers in a file are float32.
ALLOWED: dict[str, dict[str, tuple[int | float, ...]]] = {
    "Sigmoid": {},
    "Tanh": {},
    "Relu": {},
    "LeakyRelu": {"alpha": (0.01,)},
    "Elu": {"alpha": (1.0,)},
    "Softmax": {"axis": (-1, 1)},
    "Softplus": {},
    "Neg": {},
}
GEMM = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}  # its attributes
# The nodes that may come before the first layer: they turn rows into rows of floats.
BEFORE: dict[str, dict[str, tuple[int | float, ...]]] = {
    "Cast": {"to": (1, 11)},
    "Flatten": {"axis": (1,)},
    "Identity": {},
}


# The nodes of the limits, and the names and the rows of their tensors.
LIMITS = {"Max": ("lower", 0), "Min": ("upper", 1)}


def write(path: atomic_files.Path, parts: Parts, input_dtype: str) -> None:
    """Write a network that computes in float32; the file is written completely or not at all."""
    if input_dtype not in ("float32", "uint8"):
        raise ValueError(f"input_dtype is {input_dtype!r}; expected 'float32' or 'uint8'")
    parts.check_activations(ACTIVATIONS, "ONNX")
    model = _model(parts, input_dtype == "uint8")
    if len(model) > LARGEST:
        raise ValueError(f"the network takes {len(model)} bytes; an ONNX file holds {LARGEST}")
    with atomic_files.write_atomically(path) as file:
        file.write(model)


def read(path: atomic_files.Path) -> Parts:
    """Read a chain of layers; raise ValueError for any other file."""
    with atomic_files.open_to_read(path) as file:
        size = atomic_files.file_size(file)
        if size > LARGEST:
            raise UnreadableError(f"it has {size} bytes; an ONNX file holds {LARGEST}")
        return _read(memoryview(file.read(size)))


# ---- writing: numbers of fields are those of onnx.proto


def _model(parts: Parts, of_bytes: bool) -> bytes:
    classes, dtype = labels.to_text(parts.classes)
    metadata = {"bpls_fast.classes": classes, "bpls_fast.classes_dtype": dtype} if classes else {}
    return encode(
        (1, IR_VERSION),
        (2, "bpls_fast"),
        *((14, encode((1, key), (2, value))) for key, value in metadata.items()),
        (7, _graph(parts, of_bytes)),
        (8, encode((1, ""), (2, OPSET))),  # last, so that a truncated file does not have it
    )


def _graph(parts: Parts, of_bytes: bool) -> bytes:
    limits = parts.limits("<f4")
    scale = parts.input_scale or (1 / 255 if of_bytes and limits is None else 1.0)
    layers = parts.layers("<f4", scale)
    steps: list[tuple[str, list[str], Attributes]] = [("Cast", [], {"to": 1})] if of_bytes else []
    tensors: dict[str, NDArray[Any]] = {}
    if limits is not None:
        for op, (name, row) in LIMITS.items():
            tensors[name] = limits[row]
            steps.append((op, [name], {}))
    for index, layer in enumerate(layers):
        values = {f"weight_{index}": layer.weight}
        if layer.bias is not None:
            values[f"bias_{index}"] = layer.bias
        tensors |= values
        steps.append(("Gemm", [*values], {}))
        steps += [(op, [], attributes) for op, attributes in ACTIVATIONS[layer.activation]]
    between = [f"value_{step}" for step in range(1, len(steps))]
    names = [INPUTS, *between, OUTPUTS]
    nodes = [
        _node(op, [source, *weights], target, attributes)
        for (op, weights, attributes), source, target in zip(
            steps, names[:-1], names[1:], strict=True
        )
    ]
    return encode(
        *((1, node) for node in nodes),
        (2, "bpls_fast"),
        *((5, _tensor(name, values)) for name, values in tensors.items()),
        (11, _value(INPUTS, UINT8 if of_bytes else 1, parts.layer_sizes[0])),
        (12, _value(OUTPUTS, 1, parts.layer_sizes[-1])),
    )


def _node(op: str, inputs: list[str], output: str, attributes: Attributes) -> bytes:
    return encode(
        *((1, name) for name in inputs),
        (2, output),
        (4, op),
        *((5, _attribute(name, value)) for name, value in attributes.items()),
    )


def _attribute(name: str, value: int | float) -> bytes:
    number, kind = (2, 1) if isinstance(value, float) else (3, 2)
    return encode((1, name), (number, value), (20, kind))


def _tensor(name: str, values: NDArray[Any]) -> bytes:
    dims = ((1, size) for size in values.shape)
    return encode(*dims, (2, 1), (8, name), (9, values.tobytes()))


def _value(name: str, kind: int, columns: int) -> bytes:
    shape = encode((1, encode((2, "rows"))), (1, encode((1, columns))))
    return encode((1, name), (2, encode((1, encode((1, kind), (2, shape))))))


# ---- reading


def _read(data: memoryview) -> Parts:
    model = message(
        data, {1: (INT, 1), 7: (BYTES, 1), 8: (BYTES, 9), 14: (BYTES, 99), 25: (BYTES, 0)}
    )
    if not model[1] or not model[7]:
        raise UnreadableError("it has no version or no graph; expected an ONNX model")
    _check_opset(model[8])
    properties = dict(_property(entry) for entry in model[14])
    graph = model[7][0]
    tensors = _tensors(graph)
    chain = _Chain(_end(graph, 11, tensors), _end(graph, 12, {}), tensors)
    with np.errstate(over="ignore", invalid="ignore"):  # networks refuse NaN and infinity
        for node in _all(graph, 1):
            chain.follow(*_read_node(node))
    classes = labels.from_text(
        properties.get("bpls_fast.classes", ""), properties.get("bpls_fast.classes_dtype", "")
    )
    # Scale 1: the model does not divide bytes by 255.
    return Parts.from_layers(chain.layers(), 1.0, classes, chain.limits())


def _check_opset(entries: list[memoryview]) -> None:
    versions = {}
    for entry in entries:
        found = message(entry, {1: (BYTES, 1), 2: (INT, 1)})
        versions[_text(found[1])] = _only(found[2], 0)
    version = versions.get("", versions.get("ai.onnx", 0))
    if version < OLDEST_OPSET:
        raise UnreadableError(
            f"its operators are of version {version}; expected {OLDEST_OPSET} or later"
        )


def _property(entry: memoryview) -> tuple[str, str]:
    found = message(entry, {1: (BYTES, 1), 2: (BYTES, 1)})
    return _text(found[1]), _text(found[2])


def _tensors(graph: memoryview) -> dict[str, memoryview]:
    """Return the weights by name, not yet parsed."""
    tensors: dict[str, memoryview] = {}
    for tensor in _all(graph, 5):
        name = _text(message(tensor, {8: (BYTES, 1)})[8])
        if not name or name in tensors:
            raise UnreadableError(f"a tensor has no name or that of another: {name!r:.40}")
        tensors[name] = tensor
    return tensors


def _end(graph: memoryview, number: int, tensors: Mapping[str, memoryview]) -> str:
    """Return the name of the graph's only input or output; old files list the weights as inputs, too."""
    kind, ends = "input" if number == 11 else "output", []
    for value in _all(graph, number):
        name = _text(message(value, {1: (BYTES, 1)})[1])
        if name not in tensors:
            ends.append(name)
        if len(ends) > 1:
            raise UnreadableError(f"it has more than one {kind}")
    if not ends or not ends[0]:
        raise UnreadableError(f"it has no {kind}")
    return ends[0]


def _read_tensor(name: str, tensor: memoryview) -> NDArray[np.float64]:
    found = message(tensor, TENSOR)
    dims, kinds, _, floats, raw, doubles, external, location = (found[number] for number in TENSOR)
    if external or _only(location, 0):
        raise UnreadableError(
            f"the numbers of {name!r:.40} are in another file, which is not opened"
        )
    kind = TYPES.get(_only(kinds, 0))
    if kind is None:
        raise UnreadableError(
            f"{name!r:.40} has tensor type {_only(kinds, 0)}; expected 1 (float) or 11 (double)"
        )
    data = [*raw, *(floats if kind == "<f4" else doubles)]
    if len(data) != 1:
        raise UnreadableError(f"{name!r:.40} has its numbers {len(data)} times; expected once")
    values = np.frombuffer(data[0], kind)
    if any(size < 1 for size in dims) or int(np.prod(dims, dtype=object)) != values.size:
        raise UnreadableError(f"{name!r:.40} has {values.size} numbers; its shape is {dims}")
    return values.reshape(dims).astype(np.float64)


def _read_node(node: memoryview) -> tuple[str, list[str], str, dict[str, Any]]:
    """Return the operator, the names of inputs and output, and the attributes."""
    found = message(
        node, {1: (BYTES, 3), 2: (BYTES, 1), 4: (BYTES, 1), 5: (BYTES, 4), 7: (BYTES, 1)}
    )
    op, domain = _text(found[4]), _text(found[7])
    if domain not in ("", "ai.onnx"):
        raise UnreadableError(f"the node {op!r:.40} is of the domain {domain!r:.40}")
    inputs = [_text([name]) for name in found[1]]
    return op, inputs, _text(found[2]), dict(_read_attribute(entry) for entry in found[5])


def _read_attribute(entry: memoryview) -> tuple[str, int | float]:
    found = message(entry, {1: (BYTES, 1), 2: (FLOAT, 1), 3: (INT, 1)})
    name, values = _text(found[1]), [*found[2], *found[3]]
    if len(values) != 1:
        raise UnreadableError(f"the attribute {name!r:.40} is not a number")
    return name, values[0]


class _Chain:
    """The layers found so far, and the name of the value that must be the input of the next node."""

    def __init__(self, first: str, last: str, tensors: dict[str, memoryview]) -> None:
        self.value, self.last, self.tensors = first, last, tensors
        self.found: list[tuple[NDArray[Any], NDArray[Any] | None]] = []
        self.ops: list[list[str]] = []  # the operators after each layer
        self.ends: dict[str, NDArray[np.float64]] = {}  # the limits, by their nodes

    def follow(self, op: str, inputs: list[str], output: str, attributes: dict[str, Any]) -> None:
        if op in ("Add", *LIMITS) and len(inputs) == 2 and inputs[1] == self.value:
            inputs = inputs[::-1]
        if not inputs or inputs[0] != self.value or not output:
            raise UnreadableError(
                f"the node {op!r:.40} does not take the value before it; expected one chain of layers"
            )
        self.value, weights = output, inputs[1:]
        if weights and not weights[-1]:
            weights.pop()  # an optional input that is not given
        if op in ("Gemm", "MatMul"):
            self._layer(op, weights, attributes)
        elif op == "Add" and self.ops and not self.ops[-1] and self.found[-1][1] is None:
            self._add(weights)
            _check_attributes(op, attributes, {})
        elif op in ALLOWED and self.ops and not weights:
            _check_attributes(op, attributes, ALLOWED[op])
            self.ops[-1].append(op)
        elif op in LIMITS and op not in self.ends and not self.ops and len(weights) == 1:
            self.ends[op] = self._tensor(weights[0])
            _check_attributes(op, attributes, {})
        elif op in BEFORE and not self.ops and not weights:
            _check_attributes(op, attributes, BEFORE[op])
        else:
            raise UnreadableError(f"the node {op!r:.40} is not supported")

    def layers(self) -> list[Layer]:
        if self.value != self.last or not self.found:
            raise UnreadableError("its nodes do not lead through layers to its output")
        return [
            Layer(weight, bias, _activation(ops))
            for (weight, bias), ops in zip(self.found, self.ops, strict=True)
        ]

    def limits(self) -> NDArray[np.float64] | None:
        """Return the limits of the inputs, or None; without one of the two nodes, one end is infinite."""
        if not self.ends:
            return None
        inputs = self.found[0][0].shape[:1]
        if {ends.shape for ends in self.ends.values()} != {inputs}:
            shapes = [ends.shape for ends in self.ends.values()]
            raise UnreadableError(f"its limits have shapes {shapes}; expected {inputs}")
        lower, upper = (
            self.ends.get(op, np.full(inputs, end))
            for op, end in (("Max", -np.inf), ("Min", np.inf))
        )
        return np.array([lower, upper])

    def _layer(self, op: str, weights: list[str], attributes: dict[str, Any]) -> None:
        allowed = GEMM if op == "Gemm" else {}
        if not set(attributes) <= set(allowed) or attributes.get("transA"):
            raise UnreadableError(f"the node {op!r} has attributes {attributes!s:.80}")
        if not 1 <= len(weights) <= (2 if op == "Gemm" else 1):
            raise UnreadableError(f"the node {op!r} has {len(weights)} weights")
        numbers = {**GEMM, **attributes}
        weight = self._tensor(weights[0]) * numbers["alpha"]
        self.found.append((weight.T if numbers["transB"] else weight, None))
        self.ops.append([])
        if len(weights) == 2:
            self._add(weights[1:], numbers["beta"])

    def _add(self, weights: list[str], factor: float = 1.0) -> None:
        weight, bias = self.found[-1][0], self._tensor(weights[0]) * factor
        if weight.ndim != 2 or bias.shape not in (
            (),
            (1,),
            (1, 1),
            weight.shape[1:],
            (1, weight.shape[1]),
        ):
            raise UnreadableError(
                f"weights of shape {weight.shape} have a bias of shape {bias.shape}"
            )
        self.found[-1] = (weight, np.broadcast_to(bias.ravel(), weight.shape[1:]))

    def _tensor(self, name: str) -> NDArray[np.float64]:
        """Return a tensor, each only once: a small file cannot become a large network."""
        if name not in self.tensors:
            raise UnreadableError(
                f"{name!r:.40} is no tensor of the file, or one that is used twice"
            )
        return _read_tensor(name, self.tensors.pop(name))


def _activation(ops: list[str]) -> str:
    if tuple(ops) not in NAMES:
        raise UnreadableError(
            f"a layer is followed by {', '.join(ops):.80}; expected one of {', '.join(NAMES.values())}"
        )
    return NAMES[tuple(ops)]


def _check_attributes(
    op: str, attributes: dict[str, Any], allowed: Mapping[str, tuple[int | float, ...]]
) -> None:
    for name, value in attributes.items():
        if not any(np.float32(value) == np.float32(number) for number in allowed.get(name, ())):
            raise UnreadableError(f"the node {op!r} has the attribute {name!r:.40} = {value}")


def _all(graph: memoryview, wanted: int) -> Iterator[memoryview]:
    """Yield the fields of one number, which must be messages."""
    for number, wire, value in fields(graph):
        if number == wanted:
            if wire != BYTES:
                raise UnreadableError(f"field {number} of the graph has wire type {wire}")
            yield value


def _text(found: list[memoryview]) -> str:
    return bytes(found[0]).decode() if found else ""


def _only(found: list[int], default: int) -> int:
    return found[0] if found else default
