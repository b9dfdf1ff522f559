"""The squared loss of refined sweeps: its output layer, and the ridge that cross-validation prefers, in NumPy."""

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.training.context import FitContext
from bpls_fast.training.data import Batch
from bpls_fast.training.refined.losses import (
    CHUNK_RIDGE_SHARE,
    NEARLY_BEST,
    OUTPUT_EPS,
    UNINFORMATIVE_EPS,
    SquaredLoss,
)
from bpls_fast.training.refined.sweep import RefinedSweep
from tests.support.reference import same_bits, with_ones
from tests.support.samples import rings


def preferred_eps(A, T):
    """Return the largest ridge whose generalized cross-validation error is nearly the smallest."""
    mean = np.square(A).sum() / A.shape[1]
    errors = []
    for eps in OUTPUT_EPS:
        inverse = np.linalg.inv(A.T @ A + eps * mean * np.eye(A.shape[1]))
        freedom = np.trace(inverse @ A.T @ A)
        errors.append(np.square(T - A @ inverse @ A.T @ T).sum() / (len(A) - freedom) ** 2)
    return OUTPUT_EPS[np.argmax(errors <= NEARLY_BEST * np.min(errors))]


@pytest.fixture
def validated(monkeypatch):
    """List the ridges that fits choose, each beside the one that NumPy prefers."""
    calls, choose_ridge = [], RefinedSweep.choose_ridge

    def noting(sweep, batch, *given):
        (W,) = sweep.weights
        A, T = (
            with_ones(np.tanh(with_ones(batch.X.astype(float), True) @ W), True),
            batch.T.astype(float),
        )
        if (weight := batch.sample_weight) is not None:
            times = np.rint(weight / weight.min()).astype(int)
            A, T = A.repeat(times, axis=0), T.repeat(times, axis=0)
        choose_ridge(sweep, batch, *given)
        calls.append((sweep.loss.eps, preferred_eps(A, T)))

    monkeypatch.setattr(RefinedSweep, "choose_ridge", noting)
    return calls


@pytest.mark.parametrize("neurons", [5, 20, 40])
@pytest.mark.parametrize("repeated", [1, 20])
@pytest.mark.parametrize(
    ("options", "share"),
    [({}, 1.0), ({"chunk_rows": 60}, CHUNK_RIDGE_SHARE)],
    ids=["all", "chunks"],
)
def test_the_output_ridge_is_a_share_of_what_cross_validation_prefers(
    validated, options, share, repeated, neurons, monkeypatch
):
    x, y = rings(180)
    if repeated > 1:
        options = {**options, "sample_weight": np.full(180, float(repeated))}
        options["sample_weight"][::2] = 1.0
    forward, runs = RefinedSweep.forward, []
    monkeypatch.setattr(
        RefinedSweep, "forward", lambda *given: runs.append(len(given)) or forward(*given)
    )
    nets = [bf.Network([2, neurons, 3], "tanh", seed=0) for _ in range(2)]
    bf.fit_refined(nets[0], x, y, max_sweeps=3, **options)
    once = len(runs)
    ((chosen, preferred),) = validated
    assert chosen == pytest.approx(share * preferred)
    bf.fit_refined(nets[1], x, y, max_sweeps=3, output_eps=chosen, **options)
    assert len(runs) == 2 * once  # what cross-validation ran forward is not run again
    assert all(map(same_bits, nets[0].weights, nets[1].weights))


def test_the_output_ridge_is_not_below_rounding(validated):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(900, 2)).astype(np.float32), random.integers(0, 3, 900)
    net = bf.Network([2, 300, 3], "tanh", seed=0)
    bf.fit_refined(net, x, y, max_sweeps=2, chunk_rows=800)
    ((chosen, _),) = validated
    rounding = 301 * float(np.finfo(np.float32).eps)
    assert rounding > CHUNK_RIDGE_SHARE * UNINFORMATIVE_EPS  # of labels that no feature tells
    assert chosen == rounding


def test_numbers_over_chunks_have_the_least_ridge(validated):
    x, _ = rings(900)
    nets = [bf.Network([2, 20, 1], "tanh", "identity", seed=0) for _ in range(2)]
    bf.fit_refined(nets[0], x, np.sin(x[:, 0]), max_sweeps=3, chunk_rows=300)
    bf.fit_refined(nets[1], x, np.sin(x[:, 0]), max_sweeps=3, chunk_rows=300, output_eps=1e-6)
    assert not validated
    assert all(map(same_bits, nets[0].weights, nets[1].weights))


def test_the_output_layer_minimizes_the_loss_with_its_ridge():
    random = np.random.default_rng(0)
    N, T = random.normal(size=(40, 5)), random.normal(size=(40, 2))
    context = FitContext("test", 1.0, phases=("gram", "solve"))
    loss = SquaredLoss(bf.Network([3, 5, 2], seed=0), context, 0.1, False)
    found = loss.solve(N, Batch(N, T, None, 40))
    A = with_ones(N, True)
    ridge = 0.1 * np.square(A).sum() / A.shape[1]
    W = np.linalg.solve(A.T @ A + ridge * np.eye(6), A.T @ T)
    np.testing.assert_allclose(found.W, W, rtol=1e-9)
    assert found.ridge == pytest.approx(ridge)
    expected = np.square(T - A @ W).sum() + ridge * np.square(W).sum()
    assert found.loss == pytest.approx(expected)
