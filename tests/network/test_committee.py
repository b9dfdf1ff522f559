"""Several networks as one network."""

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.network.committee import joined_network


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("hidden", [(), (5,), (5, 4), (3, 4, 5)], ids=str)
@pytest.mark.parametrize("output", ["identity", "softmax"])
def test_outputs_are_the_means_of_the_outputs_before_their_activation(hidden, bias, output):
    nets = [bf.Network([4, *hidden, 3], "tanh", output, bias=bias, seed=seed) for seed in range(3)]
    x = np.random.default_rng(0).normal(size=(20, 4))
    joined = joined_network(nets)
    assert joined.layer_sizes == (4, *(3 * n for n in hidden), 3)
    mean = np.mean([net.decision(x) for net in nets], axis=0)
    np.testing.assert_allclose(joined.decision(x), mean, rtol=1e-12, atol=1e-12)


def test_networks_of_different_widths_are_joined():
    nets = [bf.Network([4, n, n + 1, 2], "relu", seed=n) for n in (3, 6)]
    x = np.random.default_rng(0).normal(size=(20, 4))
    mean = (nets[0].decision(x) + nets[1].decision(x)) / 2
    np.testing.assert_allclose(joined_network(nets).decision(x), mean, rtol=1e-12, atol=1e-12)


def test_a_joined_network_keeps_labels_and_scale_and_is_saved_like_any_other(tmp_path):
    nets = [bf.Network([4, 3, 2], "tanh", seed=seed, input_scale=0.5) for seed in range(2)]
    nets[0].classes = np.array(["a", "b"])
    joined = joined_network(nets)
    joined.save(tmp_path / "net.npz")
    loaded = bf.Network.load(tmp_path / "net.npz")
    x = np.random.default_rng(0).normal(size=(20, 4))
    assert (loaded.predict(x) == joined.predict(x)).all()
    assert (loaded.input_scale, loaded.layer_sizes) == (0.5, (4, 6, 2))


def test_one_network_is_itself():
    net = bf.Network([4, 3, 2], "softmax", seed=0)
    x = np.random.default_rng(0).normal(size=(20, 4))
    assert np.array_equal(joined_network([net]).forward(x), net.forward(x))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (bf.Network([4, 3, 2], "relu"), "networks differ in activations"),
        (bf.Network([4, 3, 2], "tanh", bias=False), "networks differ in bias"),
        (bf.Network([5, 3, 2], "tanh"), r"networks differ in inputs and outputs: \[5, 2\]"),
        (bf.Network([4, 3, 2], "tanh", input_scale=2.0), "networks differ in input_scale"),
    ],
)
def test_networks_that_differ_are_refused(other, message):
    with pytest.raises(ValueError, match=message):
        joined_network([bf.Network([4, 3, 2], "tanh"), other])


def test_hidden_softmax_layers_cannot_be_side_by_side():
    with pytest.raises(
        ValueError, match="the hidden activations are softmax and there are 2 networks"
    ):
        joined_network([bf.Network([4, 3, 2], "softmax")] * 2)
