"""Stopping rules: each gives its reason at the right moment, and none before."""

import math

import pytest

from bpls_fast.training.stopping import (
    FAILED_CHUNKS,
    FAILED_SWEEPS,
    FEWEST_TRIED,
    MANY_SWEEPS,
    SMALL_STEPS,
    Limits,
    Progress,
    first_reason,
    miss_rules,
    stagnation_rules,
)


def reasons(rules, states):
    """Return the reason after each state."""
    return [first_reason(rules, Progress(**state)) for state in states]


def refined_rules(over_chunks=False, tol=0.1, mean_square=1.0, patience=2):
    return stagnation_rules(
        over_chunks=over_chunks, tol=tol, mean_square=mean_square, patience=patience
    )


@pytest.mark.parametrize(("over_chunks", "most"), [(True, FAILED_CHUNKS), (False, FAILED_SWEEPS)])
def test_failed_steps_end_a_fit_only_in_a_row(over_chunks, most):
    rules = refined_rules(over_chunks)
    failed, fine = {"loss": 1.0, "step_failed": True}, {"loss": 0.5}
    assert reasons(rules, [failed] * (most - 1) + [fine]) == [None] * most
    assert reasons(rules, [failed] * most)[-1] == "no step lowers the loss"


def test_small_decreases_end_a_fit_over_all_rows_and_not_one_over_chunks():
    losses = [{"loss": loss} for loss in (1.0, *[0.99] * SMALL_STEPS)]
    found = reasons(refined_rules(), losses)
    assert found == [None] * SMALL_STEPS + ["the loss falls by less than tol = 0.1"]
    assert reasons(refined_rules(over_chunks=True), losses) == [None] * len(losses)


def test_a_large_decrease_starts_the_count_of_small_ones_anew():
    losses = [1.0, 0.99, 0.99, 0.5, 0.49, 0.49]
    assert reasons(refined_rules(), [{"loss": loss} for loss in losses]) == [None] * len(losses)


def test_a_loss_of_nothing_beside_the_targets_ends_a_fit():
    assert reasons(refined_rules(mean_square=4.0), [{"loss": 3.9e-6}]) == ["the rows are fitted"]
    assert reasons(refined_rules(mean_square=4.0), [{"loss": 4.1e-6}]) == [None]


def test_patience_counts_validations():
    states = [{"loss": 1.0, "validations_since_best": count} for count in (0, 1, 2)]
    found = reasons(refined_rules(over_chunks=True), states)
    assert found == [None, None, "2 validations without a better network"]


def test_misses_end_a_fit_at_zero_or_past_the_full_sweeps_where_they_do_not_fall():
    assert reasons(miss_rules(3, 9), [{"sweeps": 1, "misses": 0}]) == ["no row is missed"]
    worse = {"misses": 5, "improved": False}
    states = [{"sweeps": 3, **worse}, {"sweeps": 4, "misses": 4}, {"sweeps": 5, **worse}]
    assert reasons(miss_rules(3, 9), states) == [None, None, "the misses stopped falling"]


def test_a_search_for_the_best_number_of_sweeps_goes_on_for_a_multiple_of_it():
    rules = stagnation_rules(
        over_chunks=True, tol=0.0, mean_square=1.0, patience=99, beyond_best=1.5
    )
    states = [
        {"sweeps": FEWEST_TRIED - 1, "best_sweeps": 2},
        {"sweeps": FEWEST_TRIED, "best_sweeps": 2},
        {"sweeps": 59, "best_sweeps": 40},
        {"sweeps": 60, "best_sweeps": 40},
    ]
    found = [
        None,
        "the best network is that of sweep 2",
        None,
        "the best network is that of sweep 40",
    ]
    assert reasons(rules, states) == found


def test_the_last_sweep_of_algorithm_2_is_named():
    assert reasons(miss_rules(3, 2), [{"sweeps": 1}, {"sweeps": 2}]) == [None, "max_iter = 2"]


def test_a_limit_is_reached_by_the_sweep_that_would_exceed_it():
    limits = Limits(rows=100, max_sweeps=7, max_passes=2.0)
    assert limits.reached(0, 1000) is None  # the first sweep is always allowed
    assert limits.reached(3, 200) is None
    assert limits.reached(3, 230) == "2 passes over the data"
    assert limits.reached(7, 30) == "7 sweeps"
    assert Limits(rows=100, max_sweeps=None).reached(50, 10**9) is None


def test_sweeps_over_all_rows_grow_in_number_with_the_rows():
    assert [Limits.over_all_rows(rows, None).max_sweeps for rows in (10, 300, 1000)] == [3, 3, 10]
    assert Limits.over_all_rows(1000, 4).max_sweeps == 4


def test_a_plan_counts_the_sweeps_and_passes_that_limits_allow():
    assert Limits(100, None, 2.0).plan(iter([30] * 100)) == (6, 1.8)
    assert Limits(100, 4, math.inf).plan(iter([30] * 100)) == (4, 1.2)
    assert Limits(100, None, math.inf).plan(iter([30] * (MANY_SWEEPS + 1))) is None
