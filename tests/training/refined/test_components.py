"""Components of the inputs: which directions are kept, and fits on them as fits on the inputs."""

import numpy as np
import pytest

import bpls_fast as bf
import bpls_fast.training.refined.inputs as inputs
from bpls_fast.kernels import linear_bytes
from bpls_fast.training.refined.components import ROUND, leading_components, variance
from bpls_fast.training.stopping import MANY_SWEEPS
from tests.support.subprocesses import output_of, run_code


def wide_rows(count=6000, kind="uint8", seed=0):
    """Draw rows of 96 columns that eight numbers determine, but for noise, and labels that depend on these."""
    random = np.random.default_rng(seed)
    hidden = random.normal(size=(count, 8))
    X = 128 + 12 * hidden @ random.normal(size=(8, 96)) + random.normal(size=(count, 96))
    labels = (hidden[:, 0] * hidden[:, 1] > 0).astype(int) + 2 * (hidden[:, 2] > 0)
    X = X.clip(0, 255).astype(np.uint8)
    return (X if kind == "uint8" else (X / 255).astype(kind)), labels


def spectrum_gram(eigenvalues, bias, seed=0):
    """Make a Gram matrix with these eigenvalues, and its eigenvectors; the ones of a bias are orthogonal to all."""
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(eigenvalues),) * 2))
    G = np.zeros((len(eigenvalues) + bias,) * 2)
    G[: len(eigenvalues), : len(eigenvalues)] = Q * eigenvalues @ Q.T
    G[len(eigenvalues) :, len(eigenvalues) :] = 1.0
    return G, Q


def fitted(X, labels, **options):
    net = bf.Network([X.shape[1], 20, 4], activation="tanh", seed=1)
    report = bf.fit_refined(net, X, labels, **options)
    return net, report


@pytest.fixture
def found(monkeypatch):
    """List the components that every fit finds."""
    calls = []

    def noting(*arguments):
        calls.append(leading_components(*arguments))
        return calls[-1]

    monkeypatch.setattr(inputs, "leading_components", noting)
    return calls


@pytest.mark.parametrize("bias", [False, True])
def test_components_span_the_directions_with_large_eigenvalues(bias):
    eigenvalues = np.concatenate([np.linspace(50, 5, 20), np.full(80, 1e-4)])
    G, Q = spectrum_gram(eigenvalues, bias)
    components = leading_components(G, bias, 10.0, 100, 64, np.random.default_rng(0), np.float64)
    B = components.M[:100, : components.M.shape[1] - bias]
    assert B.shape[1] == 2 * ROUND  # 20 directions count as much as one each, the others as nothing
    basis, _ = np.linalg.qr(B)
    np.testing.assert_allclose(np.linalg.norm(basis.T @ Q[:, :20], axis=0), 1, atol=1e-4)
    if bias:
        assert components.M[100, -1] == 1
        assert not components.M[100, :-1].any()
        assert not components.M[:100, -1].any()


@pytest.mark.parametrize(
    ("eigenvalues", "ridge", "most"),
    [
        (np.ones(100), 10.0, 50),  # nothing stands out
        (np.linspace(50, 5, 100), 0.0, 50),  # without a ridge all can be learnt
        (np.concatenate([np.full(40, 50.0), np.zeros(60)]), 10.0, 32),  # more than are worth it
        (np.concatenate([np.full(4, 50.0), np.zeros(96)]), 10.0, 8),  # fewer than vectors hold
    ],
)
def test_no_components_where_they_would_be_many(eigenvalues, ridge, most):
    G, _ = spectrum_gram(eigenvalues, True)
    assert (
        leading_components(G, True, ridge, 100, most, np.random.default_rng(0), np.float64) is None
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("largest", [1e2, 1e4, 1e6, 1e8, 1e10, 1e40, 1e160])
def test_directions_that_count_are_not_lost_beside_much_larger_ones(largest, dtype):
    eigenvalues = np.concatenate([np.geomspace(largest, 1, 60), np.full(140, 1e-6)])
    G, Q = spectrum_gram(eigenvalues, False)
    components = leading_components(G, False, 1.0, 10, 100, np.random.default_rng(0), dtype)
    if largest <= 1e6:
        assert components is not None
    if components is not None:
        basis, _ = np.linalg.qr(components.M)
        assert np.linalg.norm(basis.T @ Q[:, :60], axis=0).min() > 0.99


@pytest.mark.parametrize("eps", [1e-5, 1e-40, 1e-170])
def test_no_ridge_is_too_small_for_rows_of_a_lower_rank(eps, recwarn):
    X = np.zeros((9000, 128), np.float32)
    X[:, :30] = np.random.default_rng(0).normal(size=(9000, 30))
    labels = (X[:, 0] > 0).astype(int)
    net = bf.Network([128, 60, 20, 2], "relu", seed=0)
    bf.fit_refined(net, X, labels, eps=eps, max_passes=5)
    assert (net.predict(X) == labels).mean() > 0.9
    assert not [warning for warning in recwarn if "overflow" in str(warning.message)]


def test_inputs_far_from_zero_are_learnt_without_components():
    random = np.random.default_rng(0)
    hidden = random.normal(size=(9000, 8))
    X = (1e4 + hidden @ random.normal(size=(8, 128))).astype(np.float32)
    labels = (hidden[:, 0] > 0).astype(int)
    net = bf.Network([128, 30, 20, 2], "relu", seed=0)
    bf.fit_refined(net, X, labels)
    assert (net.predict(X) == labels).mean() > 0.9


def test_longer_fits_keep_more_directions():
    G, _ = spectrum_gram(np.geomspace(100, 1e-4, 100), False)
    counts = [
        leading_components(
            G, False, 10.0, sweeps, 100, np.random.default_rng(0), np.float64
        ).M.shape[1]
        for sweeps in (1, 30, 1000)
    ]
    assert counts[0] < counts[1] < counts[2]


@pytest.mark.parametrize("kind", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("bias", [False, True])
def test_a_network_on_components_is_one_on_the_inputs(kind, bias):
    X, _ = wide_rows(kind=kind)
    scale = 1 / 255 if kind == "uint8" else 1.0
    G = bf.gram(X, bias=bias, scale=scale)
    ridge = 7 * G.diagonal().mean()
    components = leading_components(G, bias, ridge, 60, 48, np.random.default_rng(0), X.dtype)
    net = bf.Network([96, 5, 3], "identity", "identity", bias=bias, seed=0, input_scale=scale)
    inner, small_G = components.network(net, G)
    P = components.rows(X, scale)
    assert P.dtype == (np.float64 if kind == "float64" else np.float32)
    outer = components.whole(inner, net)
    given, left = net.forward(X), outer.forward(X)
    spread = given.std()
    np.testing.assert_allclose(inner.forward(P), left, atol=1e-4 * spread)
    # What is left out of the inputs is noise: the two networks are nearly the same.
    assert (given - left).std() < 0.15 * spread
    kept = variance(small_G, inner.weights[0], bias)
    assert 0.95 < kept / variance(G, net.weights[0], bias) <= 1
    small = bf.gram(P.astype(np.float64), bias=bias)
    np.testing.assert_allclose(small_G, small, rtol=0, atol=1e-5 * small.max())


@pytest.mark.parametrize("bias", [False, True])
def test_components_of_bytes_do_not_depend_on_how_the_rows_lie(bias):
    X, _ = wide_rows()
    G = bf.gram(X, bias=bias)
    ridge = 7 * G.diagonal().mean()
    components = leading_components(G, bias, ridge, 60, 48, np.random.default_rng(0), X.dtype)
    M = components.M[:96, : components.M.shape[1] - bias]
    np.testing.assert_array_equal(M, components.integers * components.units)
    assert np.abs(components.integers.astype(int)).max() == 127
    exact = (X.astype(np.int64) @ components.integers) * components.units
    units = components.units.astype(np.float32)
    by_integers = linear_bytes(X, components.integers, units)
    np.testing.assert_array_equal(components.rows(X, 1.0), by_integers)
    for rows in (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X[::-1]):
        found = components.rows(rows, 1.0)
        expected = exact[::-1] if rows.strides[0] < 0 else exact
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(exact).max())


@pytest.mark.parametrize("kind", ["uint8", "float32", "float64"])
def test_fits_on_components_learn_what_the_rows_tell(found, kind):
    X, labels = wide_rows(8000, kind=kind)
    net, report = fitted(X[:6000], labels[:6000], max_passes=5)
    assert found[0] is not None
    assert net.layer_sizes == (96, 20, 4)
    assert [W.shape for W in net.weights] == net.weight_shapes
    assert report.stopped == "5 passes over the data"
    assert (net.predict(X[6000:]) == labels[6000:]).mean() > 0.85


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_steps_on_components_are_those_on_the_inputs_where_it_counts(dtype):
    eigenvalues = np.geomspace(100, 1e-6, 200)
    G, Q = spectrum_gram(eigenvalues, True)
    ridge, sweeps = 7 * G.diagonal().mean(), 100
    components = leading_components(G, True, ridge, sweeps, 150, np.random.default_rng(0), dtype)
    M = components.M
    inverse = np.linalg.inv(M.T @ G @ M + ridge * M.T @ M)
    steps = Q.T @ (M @ inverse @ M.T)[:200, :200] @ Q
    expected = 1 / (eigenvalues + ridge)
    counted = eigenvalues > 10 * ridge / sweeps
    np.testing.assert_allclose(steps.diagonal()[counted], expected[counted], rtol=0.02)


@pytest.mark.parametrize(
    "change",
    [
        lambda X: (X > 140).astype(np.uint8),  # as bytes of an image: nearly black
        lambda X: X * 1e-3 - 0.12,
        lambda X: X + 2000.0 * (np.arange(96) == 0),
        lambda X: X * 1e-100,
        lambda X: X * 1e4,
        lambda X: X * 1e100,
    ],
    ids=["binary", "small", "offset", "1e-100", "1e4", "1e100"],
)
def test_fits_are_as_good_as_on_all_inputs_whatever_their_units(change):
    X, labels = wide_rows(kind="uint8")
    X = change(X if change(X[:1]).dtype == np.uint8 else X.astype(np.float64))
    scores = []
    for most in (inputs.LARGEST_MEMORY, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(inputs, "LARGEST_MEMORY", most)
            net, _ = fitted(X, labels)
        scores.append((net.predict(X) == labels).mean())
    assert scores[0] > scores[1] - 0.05


@pytest.mark.parametrize("eps", [0.0, 1e-15, 1e-13, 1e4, 1e8])
def test_any_ridge_ends_well(eps, recwarn):
    X, labels = wide_rows(kind="float64")
    X = np.concatenate([X[:, :48], X[:, :48]], axis=1)
    net, _ = fitted(X, labels, eps=eps, max_passes=2)
    assert (net.predict(X) == labels).mean() > 0.4


def test_numbers_are_learnt_on_components(found):
    X, labels = wide_rows()
    Y = np.stack([labels % 2, labels // 2], axis=1).astype(np.float32)
    net = bf.Network([96, 20, 2], activation="tanh", output_activation="identity", seed=1)
    bf.fit_refined(net, X, Y)
    assert found[0] is not None
    assert ((net.forward(X) > 0.5) == Y).mean() > 0.85


def test_fits_that_go_on_or_standardize_or_see_all_rows_keep_all_inputs(found, monkeypatch):
    X, labels = wide_rows(kind="float32")
    fitted(X, labels, standardize=True)
    fitted(X, labels, start="network")
    fitted(X[:4000], labels[:4000])
    assert not found
    fitted(np.repeat(X, 8, axis=1), labels, max_passes=1)
    assert not found  # finding components of so many inputs would cost more than they save
    fitted(X, labels, max_passes=np.inf, max_sweeps=MANY_SWEEPS + 1, callback=lambda _: True)
    assert not found  # there is time for all inputs
    monkeypatch.setattr(inputs, "LARGEST_MEMORY", len(X) * 4 * ROUND - 1)
    fitted(X, labels)
    assert found == [None]


def test_callbacks_and_held_out_rows_see_networks_on_the_inputs(found):
    X, labels = wide_rows()
    scores = []

    def look(report):
        assert report.network.layer_sizes == (96, 20, 4)
        scores.append((report.network.predict(X) == labels).mean())

    net, report = fitted(X, labels, validation_fraction=0.1, callback=look)
    assert found[0] is not None
    assert len(scores) == report.iterations
    assert scores[-1] > 0.85
    assert report.validation[-1][1] > 0.85
    assert (net.predict(X) == labels).mean() > 0.85


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_inputs_of_a_lower_rank_than_their_components_are_learnt(found, kind):
    random = np.random.default_rng(0)
    hidden = random.normal(size=(6000, 3))
    X = (hidden @ random.normal(size=(3, 96))).astype(kind)
    X[:, ::2] = 0
    labels = (hidden[:, 0] > 0) + 2 * (hidden[:, 1] > 0)
    net, _ = fitted(X, labels)
    assert found[0] is not None
    assert (net.predict(X) == labels).mean() > 0.95


def test_weights_of_rows_count_on_components(found):
    X, labels = wide_rows()
    wrong = np.arange(6000) % 3 == 0
    labels[wrong] = 0
    net, _ = fitted(X, labels, sample_weight=np.where(wrong, 1e-3, 1.0))
    assert found[0] is not None
    assert (net.predict(X) == labels)[~wrong].mean() > 0.85


def test_fits_on_components_have_the_same_bits_at_any_thread_count():
    program = (
        "import hashlib, numpy as np, bpls_fast as bf\n"
        "from tests.training.refined.test_components import fitted, wide_rows\n"
        "from bpls_fast.training.refined.components import Components\n"
        "network = Components.network\n"
        "Components.network = lambda *given: print('used') or network(*given)\n"
        "net, _ = fitted(*wide_rows(), max_passes=3)\n"
        "print(hashlib.sha256(b''.join(W.tobytes() for W in net.weights)).hexdigest())\n"
    )
    hashes = {output_of(run_code(program, BPLS_NUM_THREADS=str(threads))) for threads in (1, 2, 3)}
    assert len(hashes) == 1
    assert hashes.pop().startswith("used")
