"""Rows of data: sources, training sets and batches."""

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.training.data import ArrayRows, Batch, RowSource, Samples, read_all
from tests.support.reference import same_bits


class CountedRows:
    """A source that computes its rows from their numbers and notes which blocks were read."""

    count, columns, dtype = 90, 2, np.dtype(np.float64)

    def __init__(self):
        self.read = []

    def _rows(self, numbers):
        return np.stack([np.sin(numbers), np.cos(0.7 * numbers)], axis=1)

    def take(self, chosen, out):
        out[:] = self._rows(chosen)
        return out

    def blocks(self, block_rows=40):
        for first in range(0, self.count, block_rows):
            numbers = np.arange(first, min(first + block_rows, self.count))
            self.read.append(len(numbers))
            yield self._rows(numbers)


def test_arrays_and_classes_with_the_members_of_the_protocol_are_sources():
    assert isinstance(ArrayRows(np.zeros((2, 3))), RowSource)
    assert isinstance(CountedRows(), RowSource)
    assert not isinstance(np.zeros((2, 3)), RowSource)


def test_all_rows_of_a_source_are_read_block_by_block():
    source = CountedRows()
    X = read_all(source)
    assert source.read == [40, 40, 10]
    np.testing.assert_array_equal(X, source.take(np.arange(90), np.empty((90, 2))))


@pytest.mark.parametrize("fit", ["fit_refined", "fit_classifier", "fit_injective"])
def test_every_fit_takes_a_source_of_rows(fit):
    source, X = CountedRows(), read_all(CountedRows())
    Y = X[:, :1] if fit == "fit_injective" else (X[:, 0] > X[:, 1]).astype(int)
    nets = []
    for rows in (source, X):
        outputs, activation = (1, "identity") if fit == "fit_injective" else (2, "softmax")
        net = bf.Network([2, 6, outputs], "tanh", activation, seed=0)
        getattr(bf, fit)(net, rows, Y)
        nets.append(net)
    assert all(map(same_bits, nets[0].weights, nets[1].weights))


def test_blocks_of_an_array_are_its_rows_in_order_without_copies():
    X = np.arange(14.0).reshape(7, 2)
    blocks = list(ArrayRows(X).blocks(3))
    assert [len(block) for block in blocks] == [3, 3, 1]
    assert all(np.shares_memory(block, X) for block in blocks)
    np.testing.assert_array_equal(np.concatenate(blocks), X)


def test_a_batch_of_labels_has_the_target_of_each_label():
    samples = Samples(np.zeros((3, 1)), np.eye(2), np.array([1, 0, 1]), None)
    np.testing.assert_array_equal(samples.as_batch().T, [[0, 1], [1, 0], [0, 1]])


def test_rows_that_follow_others_keep_the_latest_and_their_weights():
    first = Samples(np.zeros((3, 1)), np.ones((3, 1)), None, None)
    later = Samples(np.ones((2, 1)), np.zeros((2, 1)), None, np.array([0.5, 0.25]))
    kept = first.followed_by(later, 4)
    assert kept.X.ravel().tolist() == [0, 0, 1, 1]
    assert kept.sample_weight.tolist() == [1, 1, 0.5, 0.25]


def test_trial_rows_are_the_first_rows_of_a_batch():
    weight = np.arange(5.0)
    batch = Batch(np.arange(5.0)[:, np.newaxis], np.zeros((5, 1)), weight, 3)
    assert batch.trial_rows().X.ravel().tolist() == [0, 1, 2]
    few = batch.trial_rows(2)
    assert (few.trial, few.sample_weight.tolist()) == (2, [0, 1])
