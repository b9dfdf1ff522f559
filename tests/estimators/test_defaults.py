"""What the estimators decide by themselves: the number of networks, the activation; rows of weight 0 do not count."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

import bpls_fast as bf
from tests.support.samples import rings


def wave(rows, seed=0):
    x = np.random.default_rng(seed).uniform(-2, 2, (rows, 2))
    return x, np.sin(2 * x[:, 0]) + x[:, 1] ** 2


def neurons(model):
    return model.network_.layer_sizes[1]


@pytest.mark.parametrize(
    ("options", "networks"),
    [
        ({}, 4),
        ({"n_networks": 3}, 3),
        ({"activation": "softmax"}, 1),
        ({"activation": ["softmax"]}, 1),
        ({"early_stopping": True}, 1),
        ({"warm_start": True}, 1),
        ({"method": "paper"}, 1),
    ],
    ids=str,
)
def test_several_networks_are_trained_where_they_can_be_joined(options, networks):
    x, y = rings(200)
    assert neurons(bf.BPLSClassifier((10,), random_state=0, **options).fit(x, y)) == 10 * networks


def test_without_hidden_layers_one_network_is_trained():
    x, y = rings(200)
    assert bf.BPLSClassifier((), random_state=0).fit(x, y).network_.layer_sizes == (2, 3)


def test_a_network_of_many_weights_is_trained_alone():
    x, y = wave(60)
    wide = np.tile(x, (1, 300))
    assert neurons(bf.BPLSRegressor((1700,), random_state=0, max_iter=1).fit(wide, y)) == 1700


@pytest.mark.parametrize("rows", [39, 40])
def test_several_networks_take_forty_rows(rows):
    x, y = wave(rows)
    assert neurons(bf.BPLSRegressor((5,), random_state=0).fit(x, y)) == (5 if rows < 40 else 20)


def test_rows_of_weight_zero_are_as_if_they_were_not_there():
    x, y = wave(60)
    weight = np.repeat([1.0, 0.0], [35, 25])
    model = bf.BPLSRegressor((5,), random_state=0).fit(x, y, weight)
    alone = bf.BPLSRegressor((5,), random_state=0).fit(x[:35], y[:35])
    assert neurons(model) == neurons(alone) == 5
    weight[3:] = 0
    assert np.isfinite(bf.BPLSRegressor(random_state=0).fit(x, y, weight).predict(x)).all()
    labels = np.repeat([0, 1], [57, 3])
    model = bf.BPLSClassifier(class_weight={0: 0.0, 1: 1.0}, random_state=0).fit(x, labels)
    assert (model.predict(x) == 1).all()


def test_a_few_rows_that_are_repeated_are_learnt():
    x = np.tile([[0.0], [1.0]], (10, 1))
    for estimator in (bf.BPLSClassifier, bf.BPLSRegressor):
        model = estimator(random_state=0).fit(x, x[:, 0], sample_weight=np.full(20, 2.0))
        assert model.score(x, x[:, 0]) > 0.9
    same = bf.BPLSClassifier(random_state=0).fit(np.ones((8, 1)), [0, 1] * 4, np.full(8, 10.0))
    np.testing.assert_allclose(same.predict_proba([[1.0]]), 0.5, atol=0.1)


def test_regressors_choose_between_relu_and_tanh():
    x = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    kinked = bf.BPLSRegressor((20,), random_state=0).fit(
        x, np.abs(x[:, 0]) + np.maximum(x[:, 1], 0)
    )
    tried = " ".join(kinked.report_.trials)
    assert "relu" in tried
    assert "tanh" in tried
    assert (
        kinked.network_.activations[0].name == kinked.report_.trials[-1].split(":")[0].split()[-1]
    )
    given = bf.BPLSRegressor((20,), "tanh", random_state=0).fit(x, x[:, 0])
    assert given.network_.activations[0].name == "tanh"
    assert "relu" not in " ".join(given.report_.trials)


def test_a_fit_that_fails_leaves_the_stream_as_it_was():
    x, y = wave(600)
    model, same = (bf.BPLSRegressor(random_state=0).partial_fit(x, y) for _ in range(2))
    with pytest.raises(ValueError, match="700 networks are trained"):
        model.set_params(n_networks=700).fit(1e-3 * x, y)
    more = wave(50, seed=1)
    np.testing.assert_array_equal(
        model.partial_fit(*more).predict(x), same.partial_fit(*more).predict(x)
    )


def test_the_out_of_fold_score_is_that_of_corrected_outputs_and_ends_with_a_stream():
    random = np.random.default_rng(0)
    x, noise = random.normal(size=(300, 8)), random.normal(size=300)
    model = bf.BPLSRegressor(random_state=0).fit(x, noise)
    assert model.oob_score_ > -0.05
    assert not hasattr(model.partial_fit(x, noise), "oob_score_")


@pytest.mark.parametrize(("name", "networks"), [("tanh", 4), ("softmax", 1)])
def test_activations_may_be_objects(name, networks):
    x, y = rings(200)
    model = bf.BPLSClassifier((10,), [bf.activations[name]], random_state=0).fit(x, y)
    assert neurons(model) == 10 * networks


def test_activations_may_be_an_array():
    x, y = wave(100)
    model = bf.BPLSRegressor((5,), np.array(["tanh"]), random_state=0).fit(x, y)
    assert np.isfinite(model.partial_fit(x, y).predict(x)).all()


def test_limits_of_first_rows_are_learnt_anew_with_warm_start():
    x, y = wave(60)
    limits = []
    for warm_start in (False, True):
        model = bf.BPLSRegressor((5,), warm_start=warm_start, random_state=0)
        model.partial_fit(x[:3], y[:3]).partial_fit(50 * x[3:], y[3:])
        limits.append(model.network_.input_limits)
    np.testing.assert_array_equal(*limits)
