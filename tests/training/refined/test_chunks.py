"""The rows of refined sweeps: chunks, validation rows and samples, and how often each row is seen."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpls_fast as bf
import bpls_fast.training.refined.running as refined
from bpls_fast.training.data import Samples
from bpls_fast.training.refined import chunks
from bpls_fast.training.refined.sweep import RefinedSweep
from tests.support.samples import three_blobs

# The functions by themselves.


def numbered(count):
    """Return rows that hold their own number, which is also their target and their weight."""
    column = np.arange(float(count))[:, np.newaxis]
    return Samples(column, column, None, column[:, 0])


def test_the_rows_of_a_chunk_keep_their_targets_and_weights():
    rows = chunks.Chunks(numbered(100), iter([24, 50, 50]), np.random.default_rng(0))
    for size in (24, 50):
        assert rows.size == size
        batch = rows.next()
        assert batch.X.shape == batch.T.shape == (size, 1)
        np.testing.assert_array_equal(batch.X, batch.T)
        np.testing.assert_array_equal(batch.X[:, 0], batch.sample_weight)
        assert len(np.unique(batch.X)) == size
        trial = size // chunks.TRIAL_SHARE + (size % chunks.TRIAL_SHARE > 0)
        assert batch.trial == trial


def test_chunks_double_up_to_half_of_the_rows():
    first, sweeps = 100, chunks.SWEEPS_OF_A_SIZE
    sizes = list(islice(chunks.chunk_sizes(1000, first, 1, None), sweeps + 2))
    assert sizes == [100] * sweeps + [200, 200]
    assert set(islice(chunks.chunk_sizes(1000, first, 0, None), sweeps + 2)) == {100}
    assert max(islice(chunks.chunk_sizes(250, first, 1, None), sweeps + 2)) == 125
    assert chunks.chunk_sizes(200, first, 1, None) is None
    assert next(chunks.chunk_sizes(1000, first, 1, 30)) == 30
    assert chunks.chunk_sizes(1000, first, 1, 1000) is None


def test_the_first_chunk_grows_with_the_last_hidden_layer_where_the_output_layer_is_solved():
    narrow, wide = bf.Network([3, 500, 10, 2]), bf.Network([3, 10, 500, 2])
    assert chunks.first_chunk(narrow, "squared") == chunks.FIRST_CHUNK
    assert chunks.first_chunk(wide, "squared") == 500 * chunks.ROWS_PER_NEURON["squared"]
    for net in (narrow, wide):
        assert chunks.first_chunk(net, "cross_entropy") == chunks.FIRST_CHUNK


def test_a_sample_is_in_order_and_without_repetitions(monkeypatch):
    monkeypatch.setattr(chunks, "SAMPLE_ROWS", 30)
    few = chunks.sample(numbered(30), np.random.default_rng(0))
    np.testing.assert_array_equal(few.X, numbered(30).X)
    some = chunks.sample(numbered(100), np.random.default_rng(0))
    assert len(some.X) == 30
    assert (np.diff(some.X[:, 0]) > 0).all()
    np.testing.assert_array_equal(some.X, some.targets)


def test_validation_rows_and_training_rows_are_all_rows():
    train, validation = chunks.hold_out(numbered(50), 0.2, np.random.default_rng(0))
    assert len(validation.X) == 10
    assert sorted(np.concatenate([train.X, validation.X])[:, 0]) == list(range(50))
    samples = numbered(50)
    assert chunks.hold_out(samples, 0, np.random.default_rng(0)) == (samples, None)


@pytest.mark.parametrize("fraction", [-0.1, 1, np.nan, "half", 0.999])
def test_a_wrong_validation_fraction_is_named(fraction):
    with pytest.raises(ValueError, match="validation_fraction is"):
        chunks.hold_out(numbered(10), fraction, np.random.default_rng(0))


# In a fit.


@given(
    rows=st.integers(1, 300),
    chunk=st.integers(1, 320),
    passes=st.sampled_from([0.3, 1.0, 2.5, 4.0]),
)
def test_no_row_is_seen_more_often_than_the_passes_allow(rows, chunk, passes):
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(rows, 2)), random.normal(size=(rows, 1))
    net = bf.Network([2, 3, 1], "tanh", "identity", seed=0)
    options = {"max_passes": passes, "chunk_rows": chunk, "max_sweeps": 50, "tol": 0.0}
    report = bf.fit_refined(net, X, Y, **options)
    assert report.iterations == len(report.rows) == len(report.loss)
    assert set(report.rows) <= {min(chunk, rows)}
    if chunk < rows:
        assert report.iterations == 1 or sum(report.rows) <= passes * rows + 0.5
        if "passes" in report.stopped:
            assert sum(report.rows) + chunk > passes * rows


@pytest.fixture
def seen(monkeypatch):
    """List the first column of the rows of every sweep."""
    columns, sweep = [], RefinedSweep.sweep

    def patched(self, rows, **options):
        columns.append(rows.X[:, 0].copy())
        return sweep(self, rows, **options)

    monkeypatch.setattr(RefinedSweep, "sweep", patched)
    return columns


def test_every_row_is_in_one_chunk_of_a_pass(seen):
    X = np.c_[np.arange(120.0), np.random.default_rng(0).normal(size=120)]
    net = bf.Network([2, 3, 2], "tanh", seed=0)
    bf.fit_refined(net, X, X[:, 1] > 0, chunk_rows=30, max_passes=2)
    assert len(seen) == 8
    for one_pass in (seen[:4], seen[4:]):
        assert sorted(np.concatenate(one_pass)) == list(range(120))
    assert not np.array_equal(seen[0], seen[4])


def test_what_is_held_out_is_never_trained_on(seen):
    X = np.c_[np.arange(200.0), np.random.default_rng(0).normal(size=200)]
    for options in ({}, {"chunk_rows": 40}):
        seen.clear()
        net = bf.Network([2, 3, 2], "tanh", seed=0)
        bf.fit_refined(net, X, X[:, 1] > 0, validation_fraction=0.25, **options)
        assert len(np.unique(np.concatenate(seen))) == 150


def test_over_chunks_the_rows_held_out_are_looked_at_every_few_sweeps():
    X, labels = three_blobs(2000)
    net = bf.Network([3, 8, 3], "tanh", seed=0)
    report = bf.fit_refined(
        net, X, labels, validation_fraction=0.2, chunk_rows=100, max_sweeps=40, patience=3
    )
    looks = [sweep for sweep, _ in report.validation]
    every = refined.VALIDATE_EVERY
    assert looks == list(range(every, report.iterations + 1, every))
    best = max(report.validation, key=lambda look: look[1])
    assert report.best + 1 == best[0]
    assert f"{best[1]:12.2%}  kept" in str(report)
