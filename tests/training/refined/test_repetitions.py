"""Weights are repetitions: the plan of a fit counts a row of weight 2 twice."""

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.training.data import MOST_REPETITIONS, Samples
from bpls_fast.training.refined.chunks import different_rows
from tests.support.samples import rings


def fitted(x, y, weights=None, **options):
    """Return a network of three outputs and the report on its fit."""
    net = bf.Network([2, 12, 3], activation="tanh", seed=0)
    return net, bf.fit_refined(net, x, y, sample_weight=weights, **options)


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
@pytest.mark.parametrize("weight", [2, 3])
def test_a_weight_of_all_rows_gives_what_repeated_rows_give(loss, weight):
    x, y = rings(300)  # fewer than are calibrated on, also if they are repeated
    net, report = fitted(x, y, np.full(len(x), weight), loss=loss)
    repeated, expected = fitted(np.repeat(x, weight, axis=0), np.repeat(y, weight), loss=loss)
    assert report.iterations == expected.iterations == weight * 3
    np.testing.assert_allclose(net.forward(x), repeated.forward(x), rtol=0, atol=1e-6)


def test_whole_weights_of_numbers_give_what_repeated_rows_give():
    x = np.random.default_rng(0).normal(size=(600, 3))
    y = np.sin(x[:, :1]) + x[:, 1:2] ** 2
    counts = np.random.default_rng(1).integers(0, 5, len(x))
    outputs = []
    for rows, targets, weights in (
        (x, y, counts),
        (np.repeat(x, counts, axis=0), np.repeat(y, counts, axis=0), None),
    ):
        net = bf.Network([3, 12, 1], "tanh", "identity", seed=0)
        bf.fit_refined(net, rows, targets, sample_weight=weights, standardize=True)
        outputs.append(net.forward(x))
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=0, atol=1e-6)


def test_over_chunks_a_weight_of_all_rows_gives_what_repeated_rows_give_but_for_their_choice():
    x, y = rings(4000)
    outputs = np.zeros((3, len(x), 3))
    for seed in range(6):
        fits = (
            fitted(x, y, np.full(len(x), 2.0), seed=seed),
            fitted(np.repeat(x, 2, axis=0), np.repeat(y, 2), seed=seed),
            fitted(np.tile(x, (2, 1)), np.tile(y, 2), seed=seed),
        )
        outputs += [net.forward(x) / 6 for net, _ in fits]
        report, expected, _ = (report for _, report in fits)
        assert report.iterations == expected.iterations
        assert max(report.rows) < max(expected.rows)  # each different row once
    # The order of repeated rows is another choice of the rows of the chunks.
    weighted, repeated, tiled = outputs
    assert np.abs(weighted - repeated).mean() < 1.5 * np.abs(tiled - repeated).mean()


def test_the_number_of_different_rows_is_that_of_repeated_ones():
    repeated = np.repeat(np.arange(3000), 3)
    drawn = np.random.default_rng(0).permutation(repeated)[:2500]
    assert different_rows(2500, 3000, 9000) == pytest.approx(len(np.unique(drawn)), rel=0.02)
    assert different_rows(2500, 6000, 6000) == 2500
    assert different_rows(5000, 100, 10_000) <= 100
    assert different_rows(1, 2, 1000) == 1


@pytest.mark.parametrize(
    ("weight", "planned"), [(None, 8), (1e-9, 8), (1.0, 8), (2.5, 20), (1e12, 8 * MOST_REPETITIONS)]
)
def test_rows_count_as_at_least_one_and_not_without_end(weight, planned):
    weights = None if weight is None else np.full(8, weight)
    assert Samples(np.ones((8, 2)), np.ones((8, 1)), None, weights).planned_rows() == planned


def test_weights_with_mean_one_and_small_ones_plan_the_fit_of_rows_without_weights():
    x, y = rings(12_000)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, len(x))
    _, expected = fitted(x, y)
    for factor in (1 / weights.mean(), 1 / weights.sum()):
        _, report = fitted(x, y, factor * weights)
        assert report.rows == expected.rows


def test_class_weights_do_not_change_the_plan():
    x, y = rings(900)
    _, report = fitted(x, y, class_weight={0: 30.0}, tol=0.0)
    assert report.iterations == fitted(x, y, tol=0.0)[1].iterations
