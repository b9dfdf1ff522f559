"""Prediction on packed weights: the bits of Network.forward, its labels, its errors, and never old weights."""

import copy
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast import _core

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (130, 70), dtype=np.uint8) * (RNG.random((130, 70)) < 0.3)
ROWS = {
    "uint8": PIXELS.astype(np.uint8),
    "float32": RNG.normal(size=(130, 70)).astype(np.float32),
    "float32 with zeros": np.where(PIXELS > 0, PIXELS / 255, 0).astype(np.float32),
    "float64": RNG.normal(size=(130, 70)),
}

each_kind = pytest.mark.parametrize("kind", ROWS)


def network(**options: Any) -> bf.Network:
    return bf.Network([70, 40, 5], **{"activation": "tanh", "low": -0.3, "high": 0.3, **options})


@each_kind
@pytest.mark.parametrize("activation", bf.activations)
@pytest.mark.parametrize("input_scale", [None, 0.01])
def test_predictions_are_those_of_forward_to_the_bit(
    kind: str, activation: str, input_scale: float | None
) -> None:
    X = ROWS[kind]
    net = network(activation=activation, output_activation=activation, input_scale=input_scale)
    expected = net.forward(X)
    predictor = bf.Predictor(net)
    for found in (predictor.forward(X), predictor.predict(X), predictor.forward(X, n_threads=2)):
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes()
    for row, x in zip(expected, X, strict=True):
        for found in (predictor.predict_one(x), net.predict_one(x)):
            assert found.dtype == expected.dtype
            assert found.tobytes() == row.tobytes()


@each_kind
def test_a_network_without_bias_and_with_deep_layers_gives_the_same_bits(kind: str) -> None:
    net = bf.Network([70, 33, 90, 17, 2], "elu", "identity", bias=False, seed=2, low=-0.2, high=0.2)
    found = [net.predict_one(x) for x in ROWS[kind]]
    assert np.array(found).tobytes() == net.forward(ROWS[kind]).tobytes()


@each_kind
@pytest.mark.parametrize("classes", [np.arange(5) * 2, np.array(["a", "b", "c", "d", "e"])])
def test_labels_are_those_of_predict(kind: str, classes: np.ndarray) -> None:
    net = network()
    net.classes = classes
    X, predictor = ROWS[kind], bf.Predictor(net)
    expected = net.predict(X)
    np.testing.assert_array_equal(predictor.predict(X), expected)
    found = [predictor.predict_one(x) for x in X]
    assert [type(label) for label in found] == [type(label) for label in expected]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal([net.predict_one(x) for x in X], expected)
    assert len(set(expected.tolist())) > 1


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: np.asfortranarray(X),
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        lambda X: X[::-1].copy()[::-1],
        lambda X: X.astype(X.dtype.newbyteorder()),
        lambda X: (
            np.frombuffer(b"\0" + X.tobytes(), dtype=np.uint8)[1:].view(X.dtype).reshape(X.shape)
        ),
        lambda X: X.tolist(),
    ],
    ids=["columns", "strided", "reversed", "other byte order", "unaligned", "lists"],
)
def test_rows_of_any_layout_are_taken(convert: Any) -> None:
    X, net = ROWS["float64"], network()
    predictor, expected = bf.Predictor(net), net.forward(X)
    given = convert(X)
    assert predictor.forward(given).tobytes() == expected.tobytes()
    for i in (0, 7):
        assert predictor.predict_one(given[i]).tobytes() == expected[i].tobytes()
        assert net.predict_one(given[i]).tobytes() == expected[i].tobytes()


def test_numbers_of_other_types_are_converted_as_forward_converts_them() -> None:
    net, X = network(), np.arange(140).reshape(2, 70) % 7
    predictor = bf.Predictor(net)
    for given in (X, X.astype(np.int8), X.astype(np.float16), X % 2 == 0):
        assert predictor.forward(given).tobytes() == net.forward(given).tobytes()
        assert predictor.predict_one(given[1]).tobytes() == net.forward(given)[1].tobytes()


def test_no_rows_give_no_rows() -> None:
    assert bf.Predictor(network()).forward(np.empty((0, 70))).shape == (0, 5)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_refused(kind: str, wrong: float) -> None:
    X = ROWS[kind][:3].copy()
    X[1, 69] = wrong
    net = network()
    predictor = bf.Predictor(net)
    for call in (predictor.forward, predictor.predict, net.forward):
        with pytest.raises(ValueError, match=r"X contains (NaN|infinity) at \[1, 69\]"):
            call(X)
    for one in (predictor.predict_one, net.predict_one):
        one(X[0])
        with pytest.raises(ValueError, match=r"X contains (NaN|infinity)"):
            one(X[1])


def test_rows_that_do_not_fit_are_refused() -> None:
    net = network()
    predictor = bf.Predictor(net)
    with pytest.raises(ValueError, match="X has 69 columns; expected 70"):
        predictor.forward(np.zeros((2, 69)))
    with pytest.raises(ValueError, match="X has 1 dimensions; expected 2"):
        predictor.forward(np.zeros(70))
    for one in (predictor.predict_one, net.predict_one):
        with pytest.raises(ValueError, match="X has 69 columns; expected 70"):
            one(np.zeros(69))
        with pytest.raises(ValueError, match="x has 2 dimensions; expected one row of 70 numbers"):
            one(np.zeros((1, 70)))
        with pytest.raises(TypeError, match="expected real numbers"):
            one(["text"] * 70)
    with pytest.raises(TypeError, match="net is a list; expected a Network"):
        bf.Predictor([])  # type: ignore[arg-type]


def test_weights_too_large_for_float32_serve_float64_rows_alone() -> None:
    net = bf.Network([1, 1], output_activation="identity", bias=False)
    net.weights = [np.array([[1e300]])]
    assert net.predict_one(np.array([2.0])) == [2e300]
    with pytest.raises(ValueError, match="W contains infinity"):
        net.predict_one(np.array([2.0], dtype=np.float32))


def changed_weights(net: bf.Network) -> None:
    net.weights = [W * 2 for W in net.weights]


def changed_number(net: bf.Network) -> None:
    net.weights[0][3, 4] += 1


def changed_scale(net: bf.Network) -> None:
    net.input_scale = 3.0


def changed_classes(net: bf.Network) -> None:
    net.classes = np.arange(5) + 10


@pytest.mark.parametrize(
    "change", [changed_weights, changed_number, changed_scale, changed_classes]
)
def test_predict_one_follows_the_network_and_a_predictor_does_not(change: Any) -> None:
    net, x = network(), ROWS["float64"][0]
    predictor, before = bf.Predictor(net), net.predict_one(x)
    change(net)
    now = net.predict_one(x)
    assert now.tobytes() == net.predict(x[np.newaxis])[0].tobytes()
    assert now.tobytes() != before.tobytes()
    assert predictor.predict_one(x).tobytes() == before.tobytes()


def test_a_fit_after_a_prediction_is_seen() -> None:
    X, Y = ROWS["float64"], ROWS["float64"][:, :5]
    net = network(output_activation="identity")
    net.predict_one(X[0])
    bf.fit_injective(net, X, Y)
    assert net.predict_one(X[0]).tobytes() == net.forward(X)[0].tobytes()


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_and_pickles_predict_the_same(duplicate: Any) -> None:
    net, x = network(), ROWS["float32"][0]
    expected = net.predict_one(x).tobytes()
    assert duplicate(net).predict_one(x).tobytes() == expected
    predictor = duplicate(bf.Predictor(net))
    assert predictor.predict_one(x).tobytes() == expected
    assert repr(predictor) == f"Predictor({net!r})"


def test_several_threads_may_share_a_predictor() -> None:
    net, X = network(), np.tile(ROWS["float32"], (20, 1))
    predictor, expected = bf.Predictor(net), net.forward(X)

    def run(first: int) -> bool:
        singly = [predictor.predict_one(x) for x in X[first::4]]
        return (
            np.array(singly).tobytes() == expected[first::4].tobytes()
            and predictor.forward(X).tobytes() == expected.tobytes()
        )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(4)))


@pytest.fixture
def _threads_switch_all_the_time():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_threads_switch_all_the_time")
@pytest.mark.parametrize("labelled", [False, True])
def test_a_network_may_be_changed_while_threads_predict_with_it(labelled: bool) -> None:
    net, x = network(), ROWS["float32"][0]
    if labelled:
        net.classes = np.array(["a", "b", "c", "d", "e"])
    states = [[W.copy() for W in net.weights], [W[:, ::-1] for W in net.weights]]
    expected = []
    for weights in states:
        net.weights = weights
        expected.append(np.asarray(net.predict(x[np.newaxis])[0]).tobytes())
    assert expected[0] != expected[1]
    done = threading.Event()

    def predicted(_: int) -> set[bytes]:
        found = set()
        while not done.is_set():
            found.add(np.asarray(net.predict_one(x)).tobytes())
        return found

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(predicted, number) for number in range(4)]
        try:
            for change in range(500):
                net.weights = states[change % 2]
                # What another thread may have packed on the way is not what comes after the change.
                assert np.asarray(net.predict_one(x)).tobytes() == expected[change % 2]
        finally:
            done.set()
        assert set().union(*(one.result() for one in running)) <= set(expected)


def test_a_change_while_weights_are_packed_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    net, x, pack = network(), ROWS["float32"][0], _core.PackedNetwork
    changed = [W * 2 for W in net.weights]

    def packed(*arguments: Any) -> Any:
        old = pack(*arguments)
        net.weights = changed  # as another thread may do
        return old

    with monkeypatch.context() as patch:
        patch.setattr("bpls_fast.network.network.PackedNetwork", packed)
        net.predict_one(x)
    assert net.predict_one(x).tobytes() == net.forward(x[np.newaxis])[0].tobytes()


def test_the_time_of_a_row_is_told_for_benchmarks_and_needs_a_row() -> None:
    assert _core.read_rate(10_000, 0.001) > 0
    with pytest.raises(ValueError, match="seconds is not a finite number above 0"):
        _core.read_rate(10_000, 0)
    packed = network().packed()
    for kind in ("uint8", "float32", "float64"):
        assert min(packed.time(ROWS[kind][0], 3)) > 0
    with pytest.raises(ValueError, match="not a row"):
        packed.time(np.zeros(3), 3)
    with pytest.raises(ValueError, match="repeats"):
        packed.time(ROWS["uint8"][0], 0)
