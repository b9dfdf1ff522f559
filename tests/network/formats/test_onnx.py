"""Networks as ONNX: onnxruntime computes what they compute, other tools' chains are read, and nothing else is."""

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.network.formats import protobuf
from tests.support.exported import NAMES, ROWS, assert_equal_outputs, network
from tests.support.required import round_trip

BYTES = np.random.default_rng(7).integers(0, 256, (40, 6), dtype=np.uint8)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "net.onnx"


def outputs_of(path, rows):
    """Run a model in onnxruntime."""
    runtime = round_trip("onnxruntime")
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    return session.run(None, {given.name: rows})[0]


# What is written.


@pytest.mark.parametrize("scale", [None, 0.5])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_onnxruntime_gives_our_outputs(path, name, bias, scale):
    net = network(name, bias=bias, scale=scale)
    net.to_onnx(path)
    rows = ROWS.astype(np.float32)
    assert_equal_outputs(outputs_of(path, rows), net.forward(rows))
    assert_equal_outputs(outputs_of(path, rows), net.forward(ROWS))


@pytest.mark.parametrize("scale", [None, 0.01])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_onnxruntime_gives_our_outputs_for_bytes(path, name, bias, scale):
    net = network(name, bias=bias, scale=scale)
    net.to_onnx(path, input_dtype="uint8")
    assert_equal_outputs(outputs_of(path, BYTES), net.forward(BYTES))


def test_the_scale_of_the_inputs_is_in_the_weights(path):
    net = network("tanh", scale=1 / 255)
    net.to_onnx(path)
    assert_equal_outputs(outputs_of(path, BYTES.astype(np.float32)), net.forward(BYTES))


@pytest.mark.parametrize("name", NAMES)
def test_the_checker_of_the_format_finds_nothing(path, name):
    onnx = round_trip("onnx")
    net = network(name, classes=np.array(["a", "b", "c"]))
    net.to_onnx(path)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert [value.name for value in model.graph.input] == ["inputs"]
    assert [value.name for value in model.graph.output] == ["outputs"]
    assert [entry.value for entry in model.metadata_props] == ['["a", "b", "c"]', "<U1"]


def test_an_unknown_type_of_inputs_is_named(path, tmp_path):
    with pytest.raises(ValueError, match="input_dtype is 'int8'; expected 'float32' or 'uint8'"):
        network("tanh").to_onnx(path, input_dtype="int8")
    assert not list(tmp_path.iterdir())


def test_weights_too_large_for_float32_are_named(path, tmp_path):
    net = network("tanh")
    net.weights[1][0, 0] = 1e39
    with pytest.raises(ValueError, match=r"weights\[1\] holds numbers too large for float32"):
        net.to_onnx(path)
    assert not list(tmp_path.iterdir())


def test_a_model_beyond_the_limit_of_the_format_is_neither_written_nor_read(path, monkeypatch):
    network("tanh").to_onnx(path)
    monkeypatch.setattr("bpls_fast.network.formats.onnx.LARGEST", 100)
    with pytest.raises(ValueError, match="an ONNX file holds 100"):
        network("tanh").to_onnx(path)
    with pytest.raises(ValueError, match="an ONNX file holds 100"):
        bf.Network.from_onnx(path)


# What comes back.


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_network_comes_back_in_float32(path, name, bias):
    net = network(name, bias=bias, scale=0.5, classes=np.array([4, 5, 6], np.uint8))
    net.to_onnx(path)
    again = bf.Network.from_onnx(path)
    assert repr(again) == repr(net)
    assert again.input_scale == 1.0
    assert again.classes.dtype == np.uint8
    assert again.classes.tolist() == [4, 5, 6]
    rows = ROWS.astype(np.float32)
    assert again.forward(rows).tobytes() == net.forward(rows).tobytes()


@pytest.mark.parametrize("scale", [None, 0.01])
def test_a_network_of_bytes_comes_back_as_one(path, scale):
    net = network("sigmoid", scale=scale)
    net.to_onnx(path, input_dtype="uint8")
    assert bf.Network.from_onnx(path).forward(BYTES).tobytes() == net.forward(BYTES).tobytes()


# Other tools' files: built with the onnx package, compared with onnxruntime.


def made(nodes, tensors, *, opset=13, inputs=6, outputs=3, listed=False):
    onnx = round_trip("onnx")
    float_rows = onnx.TensorProto.FLOAT
    values = [onnx.numpy_helper.from_array(np.asarray(v), name) for name, v in tensors.items()]
    given = [onnx.helper.make_tensor_value_info("x", float_rows, ["n", inputs])]
    if listed:
        given += [
            onnx.helper.make_tensor_value_info(v.name, v.data_type, list(v.dims)) for v in values
        ]
    result = onnx.helper.make_tensor_value_info("y", float_rows, ["n", outputs])
    graph = onnx.helper.make_graph(nodes, "other", given, [result], values)
    versions = [onnx.helper.make_opsetid("", opset)]
    return onnx.helper.make_model(graph, opset_imports=versions, ir_version=7)


def node(op, inputs, output, **attributes):
    return round_trip("onnx").helper.make_node(op, inputs, [output], **attributes)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


OTHERS = {
    "MatMul and Add": lambda: made(
        [
            node("MatMul", ["x", "w"], "a"),
            node("Add", ["a", "b"], "c"),
            node("Relu", ["c"], "d"),
            node("MatMul", ["d", "v"], "e"),
            node("Add", ["u", "e"], "y"),
        ],
        {"w": numbers(6, 4), "b": numbers(4), "v": numbers(4, 3), "u": numbers(1, 3)},
    ),
    "a bias in one layer alone": lambda: made(
        [
            node("Gemm", ["x", "w"], "a"),
            node("Sigmoid", ["a"], "b"),
            node("Gemm", ["b", "v", "u"], "y"),
        ],
        {"w": numbers(6, 4), "v": numbers(4, 3), "u": numbers(3)},
    ),
    "factors and a transposed matrix": lambda: made(
        [node("Gemm", ["x", "w", "b"], "y", alpha=0.5, beta=-2.0, transB=1)],
        {"w": numbers(3, 6), "b": numbers(1)},
    ),
    "weights listed as inputs": lambda: made(
        [node("Gemm", ["x", "w", "b"], "a"), node("Softmax", ["a"], "y", axis=1)],
        {"w": numbers(6, 3), "b": numbers(3)},
        listed=True,
        opset=9,
    ),
    "an identity first": lambda: made(
        [
            node("Identity", ["x"], "a"),
            node("Flatten", ["a"], "b"),
            node("Cast", ["b"], "c", to=1),
            node("Gemm", ["c", "w", ""], "d"),
            node("Elu", ["d"], "y"),
        ],
        {"w": numbers(6, 3)},
    ),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_chains_of_other_tools_are_read(path, kind):
    onnx = round_trip("onnx")
    model = OTHERS[kind]()
    onnx.checker.check_model(model)
    onnx.save(model, path)
    rows = ROWS.astype(np.float32)
    assert_equal_outputs(bf.Network.from_onnx(path).forward(rows), outputs_of(path, rows))


@pytest.mark.parametrize("field", ["float_data", "double_data"])
def test_numbers_that_are_not_raw_are_read(path, field):
    onnx = round_trip("onnx")
    model = made([node("Gemm", ["x", "w"], "y")], {"w": numbers(6, 3)})
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_type = 1 if field == "float_data" else 11
    getattr(tensor, field).extend(numbers(6, 3).ravel().tolist())
    path.write_bytes(model.SerializeToString())
    np.testing.assert_array_equal(bf.Network.from_onnx(path).weights[0], numbers(6, 3))
    assert onnx.numpy_helper.to_array(tensor).tolist() == numbers(6, 3).tolist()


# What is refused.


def refuse(path, data, message):
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message) as refused:
        bf.Network.from_onnx(path)
    assert path.name in str(refused.value)


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"PK\3\4" * 9, b"hello" * 9, b"\xff" * 40], ids=range(5)
)
def test_a_file_of_another_kind_is_recognised(path, data):
    refuse(path, data, "cannot be read as a network")


W, V = {"w": (6, 3)}, {"v": (3, 3)}
GEMM = ("Gemm", ["x", "w"], "y")


@pytest.mark.parametrize(
    ("nodes", "tensors", "message"),
    [
        ([("Conv", ["x", "w"], "y")], W, "the node 'Conv' is not supported"),
        ([("Relu", ["x"], "y")], {}, "the node 'Relu' is not supported"),
        ([("Identity", ["x"], "y")], {}, "do not lead through layers"),
        ([], {}, "do not lead through layers"),
        ([("Gemm", ["x", "w"], "a")], W, "do not lead through layers to its output"),
        ([("Gemm", ["q", "w"], "y")], W, "does not take the value before it"),
        ([("MatMul", ["w", "x"], "y")], W, "does not take the value before it"),
        ([("Gemm", [], "y")], W, "does not take the value before it"),
        ([("Gemm", ["x"], "y")], W, "has 0 weights"),
        ([("MatMul", ["x", "w", "w"], "y")], W, "has 2 weights"),
        ([("Gemm", ["x", "q"], "y")], W, "'q' is no tensor of the file"),
        ([("Gemm", ["x", "w", "w"], "y")], W, "'w' is no tensor of the file, or one .* twice"),
        ([("Gemm", ["x", "w", "b"], "y")], {**W, "b": (4,)}, "a bias of shape"),
        ([("Gemm", ["x", "w", "b"], "y")], {**W, "b": (3, 1)}, "a bias of shape"),
        ([("Gemm", ["x", "w"], "y", {"transA": 1})], W, "has attributes"),
        ([("Gemm", ["x", "w"], "y", {"gamma": 1})], W, "has attributes"),
        ([("MatMul", ["x", "w"], "y", {"alpha": 1.0})], W, "has attributes"),
        ([("Gemm", ["x", "w"], "y", {"alpha": "one"})], W, "'alpha' is not a number"),
        ([("Gemm", ["x", "w"], "y", {"alpha": float("inf")})], W, "NaN or infinity"),
        (
            [("Gemm", ["x", "w"], "a"), ("LeakyRelu", ["a"], "y", {"alpha": 0.2})],
            W,
            "'alpha' = 0.2",
        ),
        ([("Gemm", ["x", "w"], "a"), ("Softmax", ["a"], "y", {"axis": 0})], W, "'axis' = 0"),
        ([("Gemm", ["x", "w"], "a"), ("Relu", ["a"], "y", {"axis": 1})], W, "'axis' = 1"),
        ([("Cast", ["x"], "a", {"to": 7}), ("Gemm", ["a", "w"], "y")], W, "'to' = 7"),
        (
            [("Gemm", ["x", "w"], "a"), ("Cast", ["a"], "y", {"to": 1})],
            W,
            "the node 'Cast' is not supported",
        ),
        (
            [("Gemm", ["x", "w"], "a"), ("Relu", ["a"], "b"), ("Tanh", ["b"], "y")],
            W,
            "followed by Relu, Tanh; expected one of identity, sigmoid",
        ),
        ([("Gemm", ["x", "w"], "a"), ("Neg", ["a"], "y")], W, "followed by Neg"),
        (
            [("Gemm", ["x", "w"], "a"), ("Relu", ["a"], "b"), ("Add", ["b", "v"], "y")],
            {**W, "v": (3,)},
            "the node 'Add' is not supported",
        ),
        (
            [GEMM, ("Gemm", ["y", "v"], "z"), ("Identity", ["z"], "y")],
            {**W, **V},
            "'Identity' is not supported",
        ),
        ([("Gemm", ["x", "w"], "a"), ("Gemm", ["a", "v"], "y")], {**W, "v": (4, 3)}, "shapes"),
        ([GEMM], {"w": (6,)}, "layer 0 has weights"),
        ([GEMM], {"w": ()}, "layer 0 has weights"),
        ([GEMM], {"w": (6, 3, 1)}, "field 1 .* more than 2 times"),
        ([GEMM], {"w": (0, 3)}, "its shape is"),
    ],
    ids=range(33),
)
def test_what_is_no_chain_of_layers_is_refused(path, nodes, tensors, message):
    values = {name: numbers(*shape) for name, shape in tensors.items()}
    built = [node(*step[:3], **(step[3] if len(step) > 3 else {})) for step in nodes]
    refuse(path, made(built, values).SerializeToString(), message)


def edited(change):
    """Return a good model after a change of its message."""
    onnx = round_trip("onnx")
    model = made([node(*GEMM)], {"w": numbers(6, 3)})
    change(onnx, model)
    return model.SerializeToString()


def external(onnx, model):
    onnx.external_data_helper.set_external_data(model.graph.initializer[0], "/etc/passwd")
    model.graph.initializer[0].ClearField("raw_data")


CHANGES = {
    "external": (external, "in another file, which is not opened"),
    "opset": (lambda _, m: setattr(m.opset_import[0], "version", 6), "of version 6; expected 7"),
    "no opset": (lambda _, m: m.ClearField("opset_import"), "of version 0; expected 7"),
    "no graph": (lambda _, m: m.ClearField("graph"), "no version or no graph"),
    "function": (lambda _, m: m.functions.add(), "field 25"),
    "domain": (lambda _, m: setattr(m.graph.node[0], "domain", "com.microsoft"), "of the domain"),
    "two inputs": (lambda _, m: m.graph.input.add(name="z"), "more than one input"),
    "no input": (lambda _, m: m.graph.ClearField("input"), "no input"),
    "two outputs": (lambda _, m: m.graph.output.add(name="z"), "more than one output"),
    "no output": (lambda _, m: m.graph.ClearField("output"), "no output"),
    "no output of a node": (lambda _, m: m.graph.node[0].ClearField("output"), "value before it"),
    "two names": (
        lambda _, m: m.graph.initializer.add(name="w"),
        "no name or that of another: 'w'",
    ),
    "no name": (lambda _, m: m.graph.initializer[0].ClearField("name"), "no name or that of"),
    "whole numbers": (
        lambda _, m: setattr(m.graph.initializer[0], "data_type", 7),
        "tensor type 7; expected 1",
    ),
    "short": (
        lambda _, m: setattr(m.graph.initializer[0], "raw_data", b"\0" * 68),
        "has 17 numbers",
    ),
    "odd": (lambda _, m: setattr(m.graph.initializer[0], "raw_data", b"\0" * 71), "damaged"),
    "large": (
        lambda _, m: m.graph.initializer[0].dims.__setitem__(0, 2**62),
        "has 18 numbers; its shape is",
    ),
    "twice": (lambda _, m: m.graph.initializer[0].float_data.extend([1.0]), "its numbers 2 times"),
    "classes": (
        lambda onnx, m: onnx.helper.set_model_props(
            m, {"bpls_fast.classes": "[1, 2]", "bpls_fast.classes_dtype": "<i8"}
        ),
        r"classes have shape \(2,\)",
    ),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_model_that_says_something_else_is_refused(path, kind):
    change, message = CHANGES[kind]
    refuse(path, edited(change), message)


# The messages themselves.


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x08", "cut off"),
        (b"\x08" + b"\xff" * 10, "longer than 64 bits"),
        (b"\x08" + b"\xff" * 9 + b"\x7f", "longer than 64 bits"),
        (b"\x0a\x05abc", "field 1 has 5 bytes; 3 are left"),
        (b"\x0d\0\0", "field 1 has 4 bytes; 2 are left"),
        (b"\x09\0", "field 1 has 8 bytes; 1 are left"),
        (b"\x02\0", "field 0"),
        (b"\x0b", "wire type 3"),
        (b"\x0f", "wire type 7"),
    ],
)
def test_bytes_that_are_no_message_are_refused(data, message):
    with pytest.raises(protobuf.UnreadableError, match=message):
        list(protobuf.fields(memoryview(data)))


def test_fields_come_back_and_the_unwanted_are_stepped_over():
    data = protobuf.encode(
        (1, 300), (2, -1), (3, 0.5), (4, "ß"), (5, b"\0\1"), (900, 2**63 - 1), (1, 7)
    )
    assert [value for _, _, value in protobuf.fields(memoryview(data + b"\x09" + b"8" * 8))] == [
        *(300, -1, 0.5, "ß".encode(), b"\0\1", 2**63 - 1, 7),
        b"8" * 8,
    ]
    found = protobuf.message(memoryview(data), {1: (protobuf.INT, 2), 7: (protobuf.BYTES, 1)})
    assert found == {1: [300, 7], 7: []}
    for wanted in ({1: (protobuf.INT, 1)}, {4: (protobuf.INT, 1)}):
        with pytest.raises(protobuf.UnreadableError, match="wire type"):
            protobuf.message(memoryview(data), wanted)
