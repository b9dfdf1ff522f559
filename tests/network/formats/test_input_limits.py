"""Limits of inputs in every format: rows inside and outside give the same outputs, and damaged limits are refused."""

import json
import subprocess

import numpy as np
import pytest

import bpls_fast as bf
from tests.support import shared_library
from tests.support.exported import ROWS, assert_equal_outputs, assert_same_network, network
from tests.support.required import program, round_trip

LIMITS = np.array(
    [[-1.0, -0.5, -np.inf, 0.25, -np.inf, -2.0], [1.0, 0.5, 0.75, np.inf, np.inf, -2.0]]
)
FAR = np.concatenate([ROWS, 1e6 * ROWS])
FILES = {
    "npz": ("save", "load"),
    "safetensors": ("to_safetensors", "from_safetensors"),
    "onnx": ("to_onnx", "from_onnx"),
}


def limited(**options):
    net = network("tanh", **options)
    net.input_limits = LIMITS
    return net


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("scale", [None, 0.5])
@pytest.mark.parametrize("form", ["npz", "safetensors"])
def test_limits_come_back_to_the_bit(tmp_path, form, scale, bias):
    save, load = FILES[form]
    net = limited(bias=bias, scale=scale, classes=np.array(["a", "b", "c"]))
    getattr(net, save)(tmp_path / "net")
    found = getattr(bf.Network, load)(tmp_path / "net")
    assert_same_network(found, net)
    assert np.array_equal(found.input_limits, LIMITS)
    assert np.array_equal(found.forward(FAR), net.forward(FAR))


@pytest.mark.parametrize("form", FILES)
def test_files_of_networks_without_limits_do_not_name_them(tmp_path, form):
    save, load = FILES[form]
    getattr(network("tanh"), save)(tmp_path / "net")
    data = (tmp_path / "net").read_bytes()
    assert not any(word in data for word in (b"limits", b"lower", b"upper", b"Max", b"Min"))
    assert getattr(bf.Network, load)(tmp_path / "net").input_limits is None


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
@pytest.mark.parametrize("scale", [None, 0.5])
def test_onnxruntime_applies_the_limits(tmp_path, dtype, scale):
    net, path = limited(scale=scale), tmp_path / "net.onnx"
    net.to_onnx(path, input_dtype=dtype)
    rows = (np.abs(FAR) % 250).astype(dtype) if dtype == "uint8" else FAR.astype(dtype)
    session = round_trip("onnxruntime").InferenceSession(path, providers=["CPUExecutionProvider"])
    assert_equal_outputs(session.run(None, {"inputs": rows})[0], net.forward(rows))
    round_trip("onnx").checker.check_model(str(path), full_check=True)
    found = bf.Network.from_onnx(path)
    assert_equal_outputs(found.forward(rows), net.forward(rows))
    assert np.array_equal(found.input_limits, LIMITS)


def test_a_chain_of_another_tool_may_have_one_limit_only(tmp_path):
    onnx = round_trip("onnx")
    W = np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32)
    ends = np.array([1, 2, 3], np.float32)
    tensors = [onnx.numpy_helper.from_array(*pair) for pair in ((W, "W"), (ends, "ends"))]
    nodes = [
        onnx.helper.make_node("Min", ["ends", "x"], ["z"]),
        onnx.helper.make_node("MatMul", ["z", "W"], ["y"]),
    ]
    kind = onnx.TensorProto.FLOAT
    given = onnx.helper.make_tensor_value_info("x", kind, [None, 3])
    result = onnx.helper.make_tensor_value_info("y", kind, [None, 2])
    graph = onnx.helper.make_graph(nodes, "other", [given], [result], tensors)
    onnx.save(onnx.helper.make_model(graph), tmp_path / "other.onnx")
    net = bf.Network.from_onnx(tmp_path / "other.onnx")
    assert np.array_equal(net.input_limits, [[-np.inf] * 3, ends])
    np.testing.assert_allclose(net.forward([[9.0, 0.0, 9.0]]), [W[0] + 3 * W[2]], rtol=1e-6)


@pytest.mark.parametrize("wide", [False, True])
def test_a_torch_module_applies_the_limits_and_comes_back(tmp_path, wide):
    torch = round_trip("torch")
    net = limited(scale=0.5)
    module = net.to_torch(torch.float64 if wide else None)
    rows = FAR.astype(np.float64 if wide else np.float32)
    with torch.no_grad():
        outputs = module(torch.from_numpy(rows)).numpy()
    assert_equal_outputs(outputs, net.forward(rows))
    assert {"0.lower", "0.upper"} <= set(module.state_dict())
    found = bf.Network.from_torch(module)
    assert np.array_equal(found.input_limits, LIMITS)
    assert_equal_outputs(found.forward(rows), net.forward(rows))
    torch.save(module, tmp_path / "module.pt")
    loaded = torch.load(tmp_path / "module.pt", weights_only=False)
    assert_equal_outputs(loaded(torch.from_numpy(rows)).detach().numpy(), outputs)


def test_limits_of_a_torch_module_must_come_first_and_be_limits():
    torch = round_trip("torch")
    limits, *layers = limited().to_torch()
    with pytest.raises(ValueError, match="module has InputLimits"):
        bf.Network.from_torch(torch.nn.Sequential(layers[0], limits, *layers[1:]))
    with pytest.raises(ValueError, match="module has InputLimits"):
        bf.Network.from_torch(torch.nn.Sequential(limits, limits, *layers))
    limits.lower.fill_(5.0)
    with pytest.raises(ValueError, match=r"input_limits of input 0 are 5\.0 and 1\.0"):
        bf.Network.from_torch(torch.nn.Sequential(limits, *layers))


@pytest.mark.parametrize(("dtype", "real"), [("float32", "float"), ("float64", "double")])
@pytest.mark.parametrize("compiler", ["cc", "c++"])
def test_the_c_header_applies_the_limits(tmp_path, compiler, dtype, real):
    program(compiler)
    net = limited(scale=0.5)
    net.to_c_header(tmp_path / "net.h", "net", dtype=dtype)
    source = "main.c" if compiler == "cc" else "main.cpp"
    (tmp_path / source).write_text(
        f"""\
#include <stdio.h>
#include "net.h"
int main(void) {{
    double given;
    {real} x[net_inputs], y[net_outputs];
    for (int i = 0; i < {len(FAR)}; ++i) {{
        for (int j = 0; j < net_inputs; ++j) {{
            if (scanf("%lf", &given) != 1) return 1;
            x[j] = ({real})given;
        }}
        net_forward(x, y);
        for (int j = 0; j < net_outputs; ++j) printf("%.17g ", (double)y[j]);
    }}
    return 0;
}}
""",
        encoding="utf-8",
    )
    strict = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion", "-Wshadow"]
    command = [compiler, *strict, "-o", "program", source, "-lm"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    rows = FAR.astype(dtype)
    text = " ".join(repr(float(value)) for value in rows.ravel())
    run = subprocess.run([tmp_path / "program"], input=text, capture_output=True, text=True)
    outputs = np.array(run.stdout.split(), np.float64).reshape(len(rows), -1)
    assert_equal_outputs(outputs, net.forward(rows))


def test_the_c_library_applies_the_limits_to_the_bit(tmp_path):
    net = limited(scale=0.5)
    net.to_safetensors(tmp_path / "net")
    found = shared_library.parsed((tmp_path / "net").read_bytes())
    for row, expected in zip(FAR, net.forward(FAR), strict=True):
        assert np.array_equal(found.forward(row), expected)


WRONG = {
    "not a number": ((0, 3), np.nan, "input_limits of input 3 are nan and inf"),
    "not in order": ((0, 0), 7.0, "input_limits of input 0 are 7.0 and 1.0"),
    "infinite below": ((0, 3), np.inf, "input_limits of input 3 are inf and inf"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("form", FILES)
def test_wrong_limits_in_a_file_are_refused(tmp_path, monkeypatch, form, wrong):
    place, value, message = WRONG[wrong]
    limits = LIMITS.copy()
    limits[place] = value
    net = limited()
    monkeypatch.setattr(type(net), "input_limits", limits)
    save, load = FILES[form]
    getattr(net, save)(tmp_path / "net")
    monkeypatch.undo()
    with pytest.raises(ValueError, match=message):
        getattr(bf.Network, load)(tmp_path / "net")
    if form == "safetensors":
        assert "input_limits of input" in shared_library.parsed((tmp_path / "net").read_bytes())


@pytest.mark.parametrize("shape", [(2, 5), (2, 7), (1, 6), (3, 6), (12,)], ids=str)
@pytest.mark.parametrize("form", FILES)
def test_limits_of_a_wrong_shape_are_refused(tmp_path, monkeypatch, form, shape):
    if form == "onnx" and shape[:1] != (2,):
        pytest.skip("a tensor for each of the two limits")
    net = limited()
    monkeypatch.setattr(type(net), "input_limits", np.zeros(shape))
    save, load = FILES[form]
    getattr(net, save)(tmp_path / "net")
    monkeypatch.undo()
    with pytest.raises(ValueError, match="limits"):
        getattr(bf.Network, load)(tmp_path / "net")
    if form == "safetensors":
        assert "input_limits" in shared_library.parsed((tmp_path / "net").read_bytes())


def test_safetensors_limits_of_another_type_are_refused(tmp_path):
    path = tmp_path / "net"
    limited().to_safetensors(path)
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header["input_limits"]["dtype"] = "I64"
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])
    with pytest.raises(ValueError, match="input_limits is"):
        bf.Network.from_safetensors(path)


@pytest.mark.parametrize("place", [1, 2], ids=["twice", "after a layer"])
def test_onnx_limits_elsewhere_are_refused(tmp_path, place):
    onnx, path = round_trip("onnx"), tmp_path / "net.onnx"
    limited().to_onnx(path)
    model = onnx.load(path)
    nodes = [node for node in model.graph.node if node.op_type != "Min"]
    if place == 2:  # Max, Gemm, … becomes Gemm, Max, …
        nodes.pop(0)
        nodes[0].input[0] = "inputs"
    else:
        nodes[1].input[0] = nodes[0].output[0]
    before, after = nodes[0], nodes[1]
    nodes.insert(1, onnx.helper.make_node("Max", [before.output[0], "upper"], ["extra"]))
    after.input[0] = "extra"
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    onnx.save(model, path)
    with pytest.raises(ValueError, match="the node 'Max' is not supported"):
        bf.Network.from_onnx(path)
