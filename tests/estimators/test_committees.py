"""Estimators of several networks, and of settings that are chosen."""

import numpy as np
import pytest

import bpls_fast as bf
from tests.support.samples import rings

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")


def wave(rows=600, seed=0):
    x = np.random.default_rng(seed).uniform(-2, 2, (rows, 2))
    return x, 100 + 30 * np.sin(2 * x[:, 0]) * x[:, 1]


def test_the_networks_of_an_estimator_are_one_network_and_predict_without_it(tmp_path):
    x, y = rings(500)
    names = np.array(["in", "between", "out"])[y]
    model = bf.BPLSClassifier((12,), "tanh", loss="auto", n_networks=3, random_state=0)
    model.fit(x, names)
    assert model.network_.layer_sizes == (2, 36, 3)
    # Four settings for the first network, one for each other.
    assert len(model.report_.trials) == 4 + 2
    assert model.score(x, names) > 0.9
    model.network_.save(tmp_path / "net.npz")
    assert (bf.Network.load(tmp_path / "net.npz").predict(x) == model.predict(x)).all()


def test_numbers_in_any_units_are_fitted_by_several_networks():
    x, y = wave()
    model = bf.BPLSRegressor((30,), n_networks=4, random_state=0).fit(x, y)
    assert model.network_.layer_sizes == (2, 120, 1)
    assert model.score(*wave(seed=1)) > 0.95
    shifted = bf.BPLSRegressor((30,), n_networks=4, random_state=0).fit(1e4 * x + 1e6, 1e-3 * y)
    np.testing.assert_allclose(
        shifted.predict(1e4 * x + 1e6), 1e-3 * model.predict(x), rtol=1e-3, atol=1e-4
    )


def test_more_networks_change_the_start_of_the_first_one_in_nothing():
    x, _ = wave(100)
    starts = []
    for count in (1, 3):
        model = bf.BPLSRegressor((5,), n_networks=count, random_state=0)
        starts.append(model._start(x, None, 1).net.weights[0])
    np.testing.assert_array_equal(*starts)


@pytest.mark.parametrize("n_networks", [1, 3])
def test_a_fit_of_chosen_settings_is_continued(n_networks):
    x, y = rings(600)
    model = bf.BPLSClassifier(
        (12,), "tanh", loss="auto", n_networks=n_networks, warm_start=True, random_state=0
    )
    sizes = model.fit(x, y).network_.layer_sizes
    assert model.fit(x, y).network_.layer_sizes == sizes
    assert model.score(x, y) > 0.9
    model.partial_fit(*rings(600, seed=1))
    assert model.network_.layer_sizes == sizes
    assert model.score(x, y) > 0.8


def test_a_stream_is_learnt_by_one_network():
    x, y = rings(600)
    model = bf.BPLSClassifier((12,), "tanh", loss="auto", n_networks=3, random_state=0)
    model.partial_fit(x, y, classes=[0, 1, 2])
    assert model.network_.layer_sizes == (2, 12, 3)


def test_softmax_layers_and_early_stopping_need_one_network():
    x, y = rings(100)
    with pytest.raises(ValueError, match="hidden activations are softmax and there are 2 networks"):
        bf.BPLSClassifier((5,), "softmax", n_networks=2).fit(x, y)
    with pytest.raises(ValueError, match="early_stopping is True; expected False with n_networks"):
        bf.BPLSClassifier((5,), "tanh", n_networks=2, early_stopping=True).fit(x, y)


def test_the_papers_method_trains_one_network():
    x, y = rings(100)
    model = bf.BPLSClassifier((5,), "tanh", n_networks=2, method="paper", random_state=0).fit(x, y)
    assert model.network_.layer_sizes == (2, 5, 3)


# ---- how uncertain the outputs are


def noisy_wave(rows, seed):
    x, y = wave(rows, seed)
    return x, y + np.random.default_rng(seed + 100).normal(size=rows) * 5


def test_the_out_of_fold_score_is_that_of_other_rows():
    model = bf.BPLSRegressor((30,), n_networks=4, random_state=0).fit(*noisy_wave(800, 0))
    assert model.oob_score_ == pytest.approx(model.score(*noisy_wave(4000, 1)), abs=0.02)
    single = bf.BPLSRegressor(n_networks=1, random_state=0).fit(*wave(100))
    assert not hasattr(single, "oob_score_")


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95])
def test_intervals_hold_the_promised_share_of_other_rows(coverage):
    model = bf.BPLSRegressor((30,), n_networks=4, random_state=0).fit(*noisy_wave(800, 0))
    x, y = noisy_wave(4000, 1)
    lower, upper = model.predict_interval(x, coverage)
    assert ((lower <= y) & (y <= upper)).mean() == pytest.approx(coverage, abs=0.04)
    assert ((lower <= model.predict(x)) & (model.predict(x) <= upper)).mean() > 0.99


def test_intervals_are_what_the_definition_of_cv_plus_says():
    x, y = noisy_wave(60, 0)
    model = bf.BPLSRegressor((5,), n_networks=3, random_state=0).fit(x, y)
    uncertainty = model._uncertainty
    sums, differences = [], []
    for outputs, of_member in zip(uncertainty.outputs(x), uncertainty.errors, strict=True):
        sums.append(outputs + of_member.T)
        differences.append(outputs - of_member.T)
    rank = int(np.ceil(0.9 * 61))
    lower, upper = model.predict_interval(x, 0.9)
    np.testing.assert_allclose(upper, np.sort(np.hstack(sums), axis=1)[:, rank - 1], rtol=1e-12)
    found = np.sort(np.hstack(differences), axis=1)[:, 60 - rank]
    np.testing.assert_allclose(lower, found, rtol=1e-12)


def test_the_outputs_of_members_are_in_the_units_of_y_and_of_the_columns():
    x, y = noisy_wave(300, 0)
    x[:, 0] += 1e6  # so far from 0 that an offset is subtracted
    model = bf.BPLSRegressor((10,), n_networks=3, random_state=0).fit(x, y, np.arange(300) % 3)
    mean = model._uncertainty.outputs(x).mean(axis=0)[:, 0]
    np.testing.assert_allclose(mean, model.predict(x), rtol=1e-9)
    assert sum(map(len, model._uncertainty.errors)) == 200  # rows of weight 0 are left out


def test_standard_deviations_are_those_of_the_errors_on_other_rows():
    model = bf.BPLSRegressor((30,), n_networks=4, random_state=0).fit(*noisy_wave(800, 0))
    x, y = noisy_wave(4000, 1)
    outputs, deviations = model.predict(x, return_std=True)
    assert np.array_equal(outputs, model.predict(x))
    assert np.sqrt(np.square((y - outputs) / deviations).mean()) == pytest.approx(1, abs=0.15)
    # Far from all rows the networks differ more.
    assert model.predict(10 * x, return_std=True)[1].mean() > 2 * deviations.mean()


def test_several_outputs_have_intervals_each():
    x, y = noisy_wave(400, 0)
    model = bf.BPLSRegressor((20,), n_networks=3, random_state=0).fit(x, np.c_[y, -2 * y])
    lower, upper = model.predict_interval(x)
    assert lower.shape == upper.shape == model.predict(x, return_std=True)[1].shape == (400, 2)
    assert (lower < upper).all()


def test_uncertainty_needs_several_networks_and_a_share():
    x, y = wave(100)
    model = bf.BPLSRegressor((5,), n_networks=1, random_state=0).fit(x, y)
    with pytest.raises(ValueError, match=r"needs a fit of several networks.*n_networks is 1"):
        model.predict_interval(x)
    with pytest.raises(ValueError, match="return_std needs a fit of several networks"):
        model.predict(x, return_std=True)
    with pytest.raises(ValueError, match="coverage is 1; expected a number above 0"):
        model.predict_interval(x, coverage=1)
    several = bf.BPLSRegressor((5,), n_networks=2, random_state=0).fit(x, y)
    several.partial_fit(x, y)
    with pytest.raises(ValueError, match="predict_interval needs a fit of several networks"):
        several.predict_interval(x)
