"""Networks as PyTorch modules: they compute the same, they come back, and no other module does."""

import warnings

import numpy as np
import pytest

import bpls_fast as bf
from tests.support.exported import NAMES, ROWS, assert_equal_outputs, network
from tests.support.required import round_trip

torch = round_trip("torch")
nn = torch.nn


def outputs_of(module, rows):
    with torch.inference_mode():
        return module(torch.from_numpy(rows)).numpy()


@pytest.mark.parametrize("scale", [None, 0.5])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_pytorch_gives_our_outputs(name, bias, scale):
    net = network(name, bias=bias, scale=scale)
    rows = ROWS.astype(np.float32)
    assert_equal_outputs(outputs_of(net.to_torch(), rows), net.forward(rows))
    # Both are within a few last places of the exact values, which are of order 1 to 100.
    wide = outputs_of(net.to_torch(torch.float64), ROWS)
    np.testing.assert_allclose(wide, net.forward(ROWS), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_pytorch_gives_our_outputs_far_from_zero(name):
    net = bf.Network([1, 1], output_activation=name, bias=False)
    net.weights = [np.ones((1, 1))]
    rows = np.linspace(-100, 100, 401)[:, np.newaxis]
    wide = outputs_of(net.to_torch(torch.float64), rows)
    np.testing.assert_allclose(wide, net.forward(rows), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_network_comes_back_to_the_bit(name, bias):
    net = network(name, bias=bias)
    again = bf.Network.from_torch(net.to_torch(torch.float64))
    assert repr(again) == repr(net)
    assert again.input_scale == 1.0
    for W, wanted in zip(again.weights, net.weights, strict=True):
        assert W.tobytes() == wanted.tobytes()


def test_a_network_of_bytes_comes_back_as_one():
    net = network("tanh", scale=1 / 255)
    rows = np.random.default_rng(0).integers(0, 256, (9, 6), dtype=np.uint8)
    again = bf.Network.from_torch(net.to_torch(torch.float64))
    assert again.forward(rows).tobytes() == net.forward(rows).tobytes()


def test_the_module_shares_no_memory_and_leaves_the_random_numbers_alone():
    net = network("tanh")
    before = [W.copy() for W in net.weights]
    state = torch.random.get_rng_state()
    module = net.to_torch(torch.float64)
    assert torch.equal(state, torch.random.get_rng_state())
    with torch.no_grad():
        for parameter in module.parameters():
            assert parameter.requires_grad
            parameter.zero_()
    for W, wanted in zip(net.weights, before, strict=True):
        np.testing.assert_array_equal(W, wanted)
    again = bf.Network.from_torch(module)
    with torch.no_grad():
        module[0].weight.fill_(1)
    assert not again.weights[0].any()


def test_the_default_type_is_that_of_pytorch():
    assert network("tanh").to_torch()[0].weight.dtype == torch.get_default_dtype()
    assert network("tanh").to_torch(torch.bfloat16)[0].bias.dtype == torch.bfloat16


def test_weights_too_large_for_the_type_are_named():
    net = network("tanh")
    net.weights[1][-1, 0] = 1e39
    with pytest.raises(ValueError, match=r"weights\[1\] holds numbers too large for torch.float32"):
        net.to_torch()


# Modules of others.


def test_nested_and_repeated_modules_and_those_that_do_nothing_are_read():
    relu = nn.ReLU(inplace=True)
    module = nn.Sequential(
        nn.Flatten(),
        nn.Sequential(nn.Linear(6, 4), relu, nn.Dropout(0.5)),
        nn.Linear(4, 4, bias=False, dtype=torch.float32),
        relu,
        nn.Identity(),
        nn.Linear(4, 3),
        nn.Dropout(),
        nn.Softplus(),
    ).eval()
    net = bf.Network.from_torch(module)
    assert repr(net) == (
        "Network([6, 4, 4, 3], activation='relu', output_activation='softplus', bias=True)"
    )
    rows = ROWS.astype(np.float32)
    assert_equal_outputs(net.forward(rows), outputs_of(module, rows))


def test_a_single_layer_is_read():
    module = nn.Linear(6, 2)
    rows = ROWS.astype(np.float32)
    assert_equal_outputs(bf.Network.from_torch(module).forward(rows), outputs_of(module, rows))


class Doubled(nn.Linear):
    def forward(self, rows):
        return 2 * super().forward(rows)


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        ([nn.Linear(2, 2), nn.GELU()], r"module has GELU\(.*\) at '1'; expected Linear layers"),
        ([nn.Sequential(nn.Linear(2, 2), nn.LogSoftmax(-1))], "LogSoftmax.* at '0.1'"),
        ([nn.Linear(2, 2), nn.ReLU(), nn.Tanh()], r"Tanh\(\) at '2'"),
        ([nn.Tanh(), nn.Linear(2, 2)], r"Tanh\(\) at '0'"),
        ([nn.Linear(2, 2), nn.LeakyReLU(0.2)], "LeakyReLU"),
        ([nn.Linear(2, 2), nn.ELU(2.0)], "ELU"),
        ([nn.Linear(2, 2), nn.Softmax(0)], "Softmax"),
        ([nn.Linear(2, 2), nn.Softplus(2.0)], "Softplus"),
        ([nn.Linear(2, 2), nn.Softplus(threshold=1.0)], "Softplus"),
        ([nn.Linear(2, 2), nn.Flatten()], "Flatten"),
        ([nn.Flatten(0), nn.Linear(2, 2)], "Flatten"),
        ([Doubled(2, 2)], "Doubled"),
        ([nn.Conv1d(2, 2, 1)], "Conv1d"),
        ([nn.BatchNorm1d(2), nn.Linear(2, 2)], "BatchNorm1d"),
        ([], "no Linear layer"),
        ([nn.Identity()], "no Linear layer"),
        ([nn.Linear(2, 3), nn.Linear(2, 3)], "module holds no valid network: weights have shapes"),
    ],
    ids=str,
)
def test_a_module_that_is_no_such_network_is_refused(modules, message):
    with pytest.raises(ValueError, match=message):
        bf.Network.from_torch(nn.Sequential(*modules))


def with_hook(where):
    """Give a network that doubles its outputs unseen, by a hook of one of its modules."""
    module = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Tanh()))
    module.get_submodule(where).register_forward_hook(lambda _, given, result: 2 * result)
    return module


def with_own_forward():
    module = nn.Linear(2, 2)
    module.forward = lambda rows: 2 * rows
    return module


def with_nothing():
    module = nn.Sequential(nn.Linear(2, 2))
    module.add_module("nothing", None)
    return module


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: with_hook(""), "Sequential with hooks, or a forward of its own, at ''"),
        (lambda: with_hook("0"), "hooks, or a forward of its own, at '0'"),
        (lambda: with_hook("1.0"), "hooks, or a forward of its own, at '1.0'"),
        (with_own_forward, "hooks, or a forward of its own, at ''"),
        (with_nothing, "module has None at 'nothing'"),
        (lambda: nn.utils.spectral_norm(nn.Linear(2, 2)), "hooks, or a forward of its own, at ''"),
        (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)), "ParametrizedLinear"),
        (lambda: nn.LazyLinear(2), "LazyLinear"),
        (lambda: nn.Linear(2, 2, dtype=torch.complex64), "a parameter of torch.complex64"),
        (lambda: nn.Linear(2, 2, device="meta"), "on meta; expected floats in memory"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_module_that_does_more_than_its_class_says_is_refused(make, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about modules of its own that PyTorch advises against
        module = make()
    with pytest.raises(ValueError, match=message):
        bf.Network.from_torch(module)


@pytest.mark.parametrize("module", [None, "net.pt", np.ones(3), {}], ids=str)
def test_what_is_no_module_is_named(module):
    with pytest.raises(TypeError, match=f"module is a {type(module).__name__}; expected a torch"):
        bf.Network.from_torch(module)


def test_parameters_that_are_not_finite_are_refused():
    module = nn.Linear(2, 2)
    with torch.no_grad():
        module.weight[0, 0] = float("nan")
    with pytest.raises(ValueError, match=r"module holds no valid network: .* NaN or infinity"):
        bf.Network.from_torch(module)


# PyTorch writes softminus as the logarithm of a sigmoid.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "softminus"])
def test_what_pytorch_exports_as_onnx_is_read(tmp_path, name):
    round_trip("onnx")
    net, path = network(name), tmp_path / "net.onnx"
    axes = {"x": {0: "n"}}
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # this exporter, the one without further packages, is the old one
        torch.onnx.export(
            net.to_torch(),
            torch.zeros(2, 6),
            path,
            dynamo=False,
            input_names=["x"],
            dynamic_axes=axes,
        )
    rows = ROWS.astype(np.float32)
    assert_equal_outputs(bf.Network.from_onnx(path).forward(rows), net.forward(rows))
