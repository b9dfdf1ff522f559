"""Memory that a fit keeps from sweep to sweep."""

import numpy as np

from bpls_fast.training.refined.buffers import Buffers


def test_a_name_has_one_array_for_all_shapes_that_fit():
    buffers = Buffers("cpu")
    large = buffers.empty("Z", (6, 4), np.float32)
    small = buffers.empty("Z", (2, 5), np.float32)
    assert large.shape == (6, 4)
    assert small.shape == (2, 5)
    assert np.shares_memory(large, small)
    assert not np.shares_memory(large, buffers.empty("N", (6, 4), np.float32))


def test_an_array_is_replaced_where_it_is_too_small_or_of_another_type():
    buffers = Buffers("cpu")
    small = buffers.empty("Z", (2, 2), np.float32)
    large = buffers.empty("Z", (3, 2), np.float32)
    assert not np.shares_memory(small, large)
    other = buffers.empty("Z", (3, 2), np.float64)
    assert other.dtype == np.float64
    assert not np.shares_memory(large, other)


def test_ones_have_the_shape_and_type_of_other_values():
    buffers = Buffers("cpu")
    for shape, dtype in (((3, 4), np.float32), ((2, 2), np.float32), ((5, 2), np.float64)):
        ones = buffers.ones(np.empty(shape, dtype))
        assert ones.dtype == dtype
        np.testing.assert_array_equal(ones, np.ones(shape))
