"""Inputs that several fits share: components of wide tables, with and without a Gram matrix."""

import tracemalloc

import numpy as np
import pytest

import bpls_fast as bf
import bpls_fast.training.refined.components as components
import bpls_fast.training.refined.layers as layers
import bpls_fast.training.refined.shared_inputs as shared
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import Samples
from bpls_fast.training.refined.running import PHASES, Plan, RefinedFit
from bpls_fast.training.refined.selection import folds
from bpls_fast.training.refined.shared_inputs import SharedInputs
from bpls_fast.training.refined.sweeps import Setting
from tests.support.reference import same_bits
from tests.support.subprocesses import assert_same_output_at_every_thread_count


def rows_of_factors(count, columns, noise, factors=6, dtype=np.float32, seed=0):
    """Draw rows that a few numbers determine, but for noise, and labels that two of these determine."""
    random = np.random.default_rng(seed)
    hidden = random.normal(size=(count, factors))
    X = hidden @ random.normal(size=(factors, columns)) / np.sqrt(factors)
    X += noise * random.normal(size=X.shape)
    return X.astype(dtype), (hidden[:, 0] * hidden[:, 1] > 0).astype(int)


def independent_rows(count, columns, seed=0):
    """Draw independent columns, and which side of a random plane each row is on."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(count, columns)).astype(np.float32)
    return X, (X @ random.normal(size=columns) > 0).astype(int)


def training_set(X, labels):
    return Samples(X, np.eye(labels.max() + 1, dtype=X.dtype), labels.astype(np.intp), None)


def inputs_of(X, labels, parts=None, *, standardize=True, **options):
    net = bf.Network([X.shape[1], 10, labels.max() + 1], "tanh", seed=0)
    context = FitContext("test", 1.0, phases=PHASES)
    samples = training_set(X, labels)
    return SharedInputs(net, samples, context, parts, standardize=standardize, **options), net


def wide_kinds():
    """Return rows of which no Gram matrix is made, with and without directions that stand out."""
    return [rows_of_factors(300, 1500, 0.3), independent_rows(300, 1500)]


# ---- the components


def test_narrow_tables_keep_all_inputs():
    X, labels = rows_of_factors(300, 64, 0.1)
    inputs, _ = inputs_of(X, labels)
    assert not inputs.reduces
    samples, reduced = inputs.all_rows()
    assert samples.X is X
    assert reduced is None


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("columns", [150, 1500])
def test_a_network_on_shared_components_is_one_on_the_inputs(columns, bias):
    X, labels = rows_of_factors(300, columns, 0.3, dtype=np.float64)
    X = 5 + X * np.geomspace(1e-3, 1e3, columns)
    net = bf.Network([columns, 10, 2], "tanh", bias=bias, seed=0)
    context = FitContext("test", 1.0, phases=PHASES)
    inputs = SharedInputs(net, training_set(X, labels), context, standardize=True)
    held = np.arange(0, 300, 4)
    rows, tested, reduced = inputs.without(held)
    assert rows.row_count == 225
    inner = reduced.network(net)
    assert inner.layer_sizes[0] == tested.X.shape[1] < columns / 2
    outer = reduced.components.whole(inner, net)
    np.testing.assert_allclose(outer.decision(X[held]), inner.decision(tested.X), atol=1e-8)


@pytest.mark.parametrize("columns", [150, 1500])
def test_weights_of_components_have_the_squares_of_standardized_weights_of_the_inputs(columns):
    X, labels = rows_of_factors(300, columns, 0.3, dtype=np.float64)
    X *= np.geomspace(1e-3, 1e3, columns)
    inputs, _ = inputs_of(X, labels)
    _, reduced = inputs.all_rows()
    V = np.random.default_rng(0).normal(size=(len(reduced.metric), 3))
    V[-1] = 0
    W = (reduced.components.M @ V)[:-1] * X.std(axis=0)[:, np.newaxis]
    np.testing.assert_allclose(np.sum(V * (reduced.metric @ V)), np.sum(W**2), rtol=1e-9)


def test_directions_that_stand_out_are_found_without_a_gram_matrix():
    X, labels = rows_of_factors(400, 2000, 1.0, dtype=np.float64)
    inputs, _ = inputs_of(X, labels)
    samples, _ = inputs.all_rows()
    assert samples.X.shape[1] == 6 + shared.LEVELS  # one column of targets tells two classes
    standardized = (X - X.mean(axis=0)) / X.std(axis=0)
    _, sizes, _ = np.linalg.svd(standardized, full_matrices=False)
    found = np.sqrt(np.sum((samples.X[:, :6]) ** 2, axis=0))
    np.testing.assert_allclose(np.sort(found)[::-1], sizes[:6], rtol=0.02)


def test_independent_columns_have_directions_of_the_targets_alone():
    X, labels = independent_rows(300, 1500)
    inputs, _ = inputs_of(X, labels)
    samples, _ = inputs.all_rows()
    assert samples.X.shape[1] == shared.LEVELS


# ---- nothing of the targets leaks


@pytest.mark.parametrize("kind", [0, 1])
def test_targets_of_a_fold_do_not_enter_its_components(kind):
    X, labels = wide_kinds()[kind]
    parts = folds(training_set(X, labels), 4, np.random.default_rng(0))
    other = labels.copy()
    other[parts[1]] = 1 - other[parts[1]]
    first, second = (inputs_of(X, y, parts)[0].without(parts[1]) for y in (labels, other))
    assert same_bits(first.rows.X, second.rows.X)
    assert same_bits(first.held.X, second.held.X)
    assert same_bits(first.reduced.components.M, second.reduced.components.M)


@pytest.mark.parametrize("columns", [150, 1500])
def test_the_target_of_a_row_does_not_enter_its_own_components(columns):
    X, labels = rows_of_factors(300, columns, 0.3)
    other = labels.copy()
    other[7] = 1 - other[7]
    first, second = (inputs_of(X, y)[0].all_rows()[0].X for y in (labels, other))
    assert same_bits(first[7], second[7])
    assert not same_bits(first, second)


# ---- fits


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize(
    "setting", [Setting("squared", 7.0), Setting("cross_entropy", 0.1, decay=0.0)]
)
def test_a_fit_on_components_of_rows_of_low_rank_is_the_fit_on_all_inputs(activation, setting):
    X, labels = rows_of_factors(400, 96, 0.0, dtype=np.float64)
    X = 3 + X * np.geomspace(1e-2, 1e2, 96)
    net = bf.Network([96, 12, 2], activation, seed=1)
    inputs, _ = inputs_of(X, labels)
    plan = Plan(np.inf, max_sweeps=8, standardize=True)
    outputs = []
    for samples, reduced in (inputs.all_rows(), (training_set(X, labels), None)):
        context = FitContext("test", setting.eps, phases=PHASES)
        random = np.random.default_rng(0)
        fit = RefinedFit(net, samples, None, setting, plan, context, random, reduced=reduced)
        fit.run()
        assert fit.best.layer_sizes[0] == 96
        outputs.append(fit.best.decision(X))
        np.testing.assert_allclose(fit.decision(samples), outputs[-1], atol=1e-6)
    np.testing.assert_allclose(outputs[0], outputs[1], atol=1e-3 * outputs[1].std())


def test_components_are_found_once_for_all_candidates_and_members(monkeypatch):
    calls = []

    def noting(*arguments):
        calls.append(arguments)
        return components.leading_components(*arguments)

    monkeypatch.setattr(shared, "leading_components", noting)
    X, labels = rows_of_factors(400, 150, 0.3)
    bf.BPLSClassifier((10,), "tanh", loss="auto", n_networks=3, random_state=0).fit(X, labels)
    assert len(calls) == 1


@pytest.mark.parametrize("networks", [1, 2, 4])
def test_labels_that_no_linear_function_tells_are_learnt_from_more_columns_than_rows(networks):
    X, labels = rows_of_factors(800, 2000, 0.3)
    net = bf.BPLSClassifier((30,), "tanh", loss="auto", n_networks=networks, random_state=0)
    net.fit(X[:600], labels[:600])
    assert net.score(X[600:], labels[600:]) > 0.8


def test_independent_columns_are_learnt_like_a_plane():
    X, labels = independent_rows(1600, 2000)
    net = bf.BPLSClassifier((30,), "tanh", loss="auto", n_networks=4, random_state=0)
    net.fit(X[:600], labels[:600])
    # A plane from 600 rows has a cosine with the true one of about (600 · 2 / π / 2000)^½ = 0.44: 64 % are right.
    assert net.score(X[600:], labels[600:]) > 0.58


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
def test_a_given_loss_takes_more_columns_than_rows(loss):
    X, labels = rows_of_factors(600, 3000, 0.3)
    net = bf.BPLSClassifier(
        (20,), "tanh", loss=loss, max_iter=40, early_stopping=True, random_state=0
    )
    net.fit(X[:400], labels[:400])
    assert net.score(X[400:], labels[400:]) > 0.6


def test_numbers_are_learnt_from_more_columns_than_rows():
    random = np.random.default_rng(0)
    hidden = random.normal(size=(600, 6))
    X = hidden @ random.normal(size=(6, 2000)) + random.normal(size=(600, 2000))
    y = 1e6 + hidden[:, 0] ** 2 + hidden[:, 1]
    net = bf.BPLSRegressor((30,), "tanh", n_networks=4, random_state=0).fit(X[:400], y[:400])
    assert net.score(X[400:], y[400:]) > 0.7


@pytest.mark.parametrize("rows", [1, 2, 5, 30])
def test_a_handful_of_rows_with_many_columns(rows):
    X, _ = independent_rows(rows, 1500)
    labels = np.arange(rows) % 2
    net = bf.Network([1500, 5, 2], "tanh", seed=0)
    bf.fit_refined(net, X, labels, standardize=True)
    assert np.isfinite(net.decision(X)).all()


def test_weights_of_rows_enter_the_directions_of_the_targets():
    X, labels = rows_of_factors(300, 1500, 0.3)
    wrong = np.concatenate([labels, 1 - labels])
    weight = np.repeat([1.0, 1e-6], 300)
    net = bf.BPLSClassifier((20,), "tanh", loss="auto", random_state=0)
    scores = [
        net.fit(np.concatenate([X, X]), wrong, sample_weight=of_rows).score(X, labels)
        for of_rows in (weight, None)
    ]
    assert scores[0] > scores[1] + 0.15


@pytest.mark.parametrize("kind", [0, 1])
def test_columns_in_other_units_give_the_same_network(kind):
    X, labels = wide_kinds()[kind]
    units = 2.0 ** np.random.default_rng(1).integers(-30, 30, X.shape[1])
    probabilities = []
    for rows in (X, (X * units).astype(np.float32)):
        net = bf.BPLSClassifier((10,), "tanh", loss="auto", random_state=0).fit(rows, labels)
        probabilities.append(net.predict_proba(rows))
    np.testing.assert_allclose(*probabilities, atol=1e-2)


# ---- cost


def test_more_columns_than_rows_take_few_multiply_adds_and_no_square_matrix(monkeypatch):
    work = [0]

    def counting(kernel):
        def counted(A, B=None, *arguments, **options):
            columns = A.shape[1] / 2 if B is None else B.shape[1]
            work[0] += A.shape[0] * A.shape[1] * columns
            if B is None:
                return kernel(A, *arguments, **options)
            return kernel(A, B, *arguments, **options)

        return counted

    for module in (shared, components, layers):
        for name in ("linear", "cross", "gram"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, counting(getattr(module, name)))
    d, n, neurons = 250, 6000, 40
    X, labels = independent_rows(d, n)
    net = bf.BPLSClassifier((neurons,), "tanh", loss="auto", n_networks=4, random_state=0)
    tracemalloc.start()
    net.fit(X, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Ten epochs of a gradient method take thirty products of all rows with the neurons.
    assert work[0] < 30 * d * n * neurons / 5
    assert peak < 8 * n * n / 4


def test_wide_fits_have_the_same_bits_at_any_number_of_threads():
    assert_same_output_at_every_thread_count(
        """
import hashlib
import numpy as np
import bpls_fast as bf
random = np.random.default_rng(0)
hidden = random.normal(size=(300, 6))
for columns in (150, 1500):
    X = (hidden @ random.normal(size=(6, columns)) + random.normal(size=(300, columns))).astype(np.float32)
    y = hidden[:, 0] > 0
    net = bf.BPLSClassifier((10,), "tanh", loss="auto", n_networks=3, random_state=0).fit(X, y)
    print(hashlib.sha256(b"".join(W.tobytes() for W in net.network_.weights)).hexdigest())
"""
    )
