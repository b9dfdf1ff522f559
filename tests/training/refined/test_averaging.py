"""The running mean of weights over sweeps."""

import numpy as np
import pytest

from bpls_fast.training.refined.averaging import LEAST_KEPT, WINDOW, averaged, kept_share


@pytest.mark.parametrize("sweeps", [1, 20, 50, 1000])
def test_the_mean_reaches_back_over_a_share_of_the_sweeps(sweeps):
    reach = 1 / (1 - kept_share(sweeps))
    assert reach == pytest.approx(max(1 / (1 - LEAST_KEPT), WINDOW * sweeps))


def test_a_mean_keeps_its_share_of_the_earlier_weights_and_changes_neither():
    earlier, later = [np.ones((2, 3)), np.zeros(2)], [np.zeros((2, 3)), np.ones(2)]
    first, second = averaged(earlier, later, 0.75)
    np.testing.assert_allclose(first, 0.75)
    np.testing.assert_allclose(second, 0.25)
    assert earlier[0].all()
    assert not later[0].any()


def test_a_mean_that_keeps_nothing_is_the_latest_weights():
    latest = [np.ones(2)]
    assert averaged([np.zeros(2)], latest, 0.0) is latest
