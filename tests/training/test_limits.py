"""Limits of columns: what is far outside the bulk is cut off where tails are heavy, and nothing else."""

import numpy as np
import pytest

from bpls_fast.training.limits import HEAVY as HEAVIEST
from bpls_fast.training.limits import MOST_ROWS, column_limits, inside_limits, wider_limits

RNG = np.random.default_rng(0)
ROWS = 2000
NO_TARGET = RNG.normal(size=ROWS)
ORDINARY = {
    "normal": RNG.normal(size=ROWS),
    "uniform": RNG.uniform(size=ROWS),
    "exponential": RNG.exponential(size=ROWS),
    "lognormal": RNG.lognormal(size=ROWS),
    "counts": RNG.poisson(0.7, ROWS),
    "binary": RNG.integers(0, 2, ROWS),
    "one hot, rare": np.arange(ROWS) % 500 == 0,
    "one hot, often": np.arange(ROWS) % 5 != 0,
    "zeros and some numbers": np.where(RNG.random(ROWS) < 0.9, 0, RNG.exponential(size=ROWS)),
    "a quarter of other numbers": np.where(RNG.random(ROWS) < 0.74, 0, RNG.normal(50, 20, ROWS)),
    "pixels": np.where(RNG.random(ROWS) < 0.7, 0, RNG.uniform(0, 255, ROWS)),
    "constant": np.full(ROWS, 7.5),
    "one event": np.arange(ROWS) == 10,
}
HEAVY = {
    "Pareto": RNG.pareto(1, ROWS) + 1,
    "lognormal, sigma 3": RNG.lognormal(0, 3, ROWS),
    "Cauchy": RNG.standard_t(1, ROWS),
    "Pareto or zero": np.where(RNG.random(ROWS) < 0.6, 0, RNG.pareto(1, ROWS) + 1),
    "one giant": np.where(np.arange(ROWS) == 10, 1e9, RNG.normal(size=ROWS)),
    "one giant beside events": np.where(np.arange(ROWS) == 10, 1e9, np.arange(ROWS) % 20 == 0),
}


def limits_of(x, y=NO_TARGET, **options):
    lower, upper = column_limits(np.asarray(x, np.float64)[:, np.newaxis], y, **options)[:, 0]
    assert lower <= upper
    return lower, upper


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ordinary_columns_are_left_alone_in_any_unit(dtype):
    X = np.column_stack([*ORDINARY.values()]).astype(dtype)
    for unit, offset in ((1.0, 0.0), (1e-8, 0.0), (1e8, 0.0), (-3.0, 1000.0)):
        rows = (unit * X + offset).astype(dtype)
        assert inside_limits(rows, column_limits(rows, NO_TARGET)) is rows


@pytest.mark.parametrize("name", set(ORDINARY) - {"constant"})
def test_there_is_room_for_mild_extrapolation_and_an_end_to_it(name):
    x = ORDINARY[name].astype(np.float64)
    lower, upper = limits_of(x)
    spread = x.max() - x.min()
    assert lower < x.min()
    assert upper >= x.max()
    assert upper < x.max() + 1000 * spread
    assert lower > x.min() - 1000 * spread


@pytest.mark.parametrize("name", HEAVY)
def test_heavy_tails_are_cut_off(name):
    x = HEAVY[name]
    lower, upper = limits_of(x)
    inside = np.clip(x, lower, upper)
    moved = np.mean(inside != x)
    assert 0 < moved < 0.1
    above = x[x > np.median(x)] - np.median(x)
    assert 9.9 * np.median(above) < upper - np.median(x) < HEAVIEST * ROWS**0.5 * np.median(above)
    assert inside.std() < 0.25 * x.std()


@pytest.mark.parametrize("name", HEAVY)
def test_limits_scale_with_the_column(name):
    x = HEAVY[name]
    lower, upper = limits_of(x)
    for unit in (1e-8, 1e8):
        np.testing.assert_allclose(limits_of(unit * x), [unit * lower, unit * upper], rtol=1e-9)
    np.testing.assert_allclose(limits_of(-x), [-upper, -lower], rtol=0.02)


def test_the_limits_are_where_the_targets_follow_the_values():
    x = HEAVY["Pareto"]
    assert 50 < limits_of(x, np.tanh(x / 100))[1] < x.max()
    for y in (3 * x + RNG.normal(size=ROWS), np.column_stack([NO_TARGET, 1e200 * x])):
        assert limits_of(x, y)[1] == x.max()
    assert limits_of(x, np.log(x))[1] < 100
    assert limits_of(x, 1e9 + np.log(x))[1] < 100
    assert limits_of(x, np.where(x > 200, "far", "near"), labels=True)[1] > 200
    assert limits_of(x, np.where(x > 2, "far", "near"), labels=True)[1] < 100


@pytest.mark.parametrize("labels", [False, True])
def test_weights_are_repetitions(labels):
    X = np.column_stack([*ORDINARY.values(), *HEAVY.values()]).astype(np.float64)[:500]
    y = (NO_TARGET[:500] > 0).astype(int) if labels else NO_TARGET[:500]
    counts = np.random.default_rng(1).integers(0, 4, 500)
    expected = column_limits(np.repeat(X, counts, axis=0), np.repeat(y, counts), labels=labels)
    found = column_limits(X, y, counts.astype(float), labels=labels)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_large_tables_are_looked_at_in_part_and_again_where_that_matters():
    rng = np.random.default_rng(2)
    rows = 7 * MOST_ROWS
    X = np.column_stack([rng.normal(size=rows), rng.pareto(1, rows), np.zeros(rows)])
    X[1::7001, 2] = rng.uniform(1, 2, len(X[1::7001]))
    y = rng.normal(size=rows)
    limits = column_limits(X, y)
    assert (X[:, 0] <= limits[1, 0]).all()
    assert 5 < limits[1, 1] < 50
    assert X[:, 2].max() <= limits[1, 2] < 100


def test_wide_tables_take_little_memory_and_time():
    X = np.random.default_rng(3).normal(size=(600, 5000)).astype(np.float32)
    limits = column_limits(X, np.zeros(600))
    assert limits.shape == (2, 5000)
    assert inside_limits(X, limits) is X


def test_numbers_near_the_end_of_the_range_are_no_error():
    x = np.array([-1.7e308, -1e308, 0.0, 1e308, 1.7e308])
    lower, upper = limits_of(x, np.arange(5.0))
    assert lower == -np.inf
    assert upper == np.inf
    x = np.r_[np.linspace(0, 1, 99), 1.7e308]
    assert limits_of(x, np.arange(100.0))[1] < 10


def test_rows_inside_are_not_copied_and_others_are_moved_to_the_limits():
    limits = np.array([[0.0, -np.inf], [1.0, np.inf]])
    inside = np.array([[0.5, 1e30]])
    assert inside_limits(inside, limits) is inside
    assert inside_limits(inside, None) is inside
    outside = np.array([[2.0, 5.0], [-1.0, 6.0]])
    assert np.array_equal(inside_limits(outside, limits), [[1.0, 5.0], [0.0, 6.0]])
    assert outside[0, 0] == 2.0


def test_wider_limits_hold_both_and_constants_say_nothing():
    limits = np.array([[0.0, -np.inf, 1.0], [1.0, np.inf, 2.0]])
    others = np.array([[-1.0, 3.0, -np.inf], [0.5, 4.0, np.inf]])
    expected = [[-1.0, 3.0, 1.0], [1.0, 4.0, 2.0]]
    assert np.array_equal(wider_limits(limits, others), expected)
