"""Rows that arrive over time: `partial_fit`, and going on with a network."""

import time
import tracemalloc

import numpy as np
import pytest

import bpls_fast as bf
from tests.support.reference import same_bits
from tests.support.samples import rings
from tests.support.subprocesses import output_of, run_code

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")


def chunks(rows, size, seed=0):
    x, y = rings(rows, seed)
    for first in range(0, rows, size):
        yield x[first : first + size], y[first : first + size]


@pytest.mark.parametrize("size", [1, 37, 2500, 20_000])
def test_chunks_of_any_size_are_learnt(size):
    model = bf.BPLSClassifier((20,), "tanh", random_state=0)
    for x, y in chunks(300 if size == 1 else 20_000, size):
        model.partial_fit(x, y, classes=[0, 1, 2])
    assert model.score(*rings(2000, seed=1)) > (0.6 if size == 1 else 0.75)


def test_the_network_improves_with_the_rows():
    model = bf.BPLSClassifier((20,), "tanh", random_state=0)
    scores = []
    for x, y in chunks(30_000, 3000):
        scores.append(model.partial_fit(x, y, classes=[0, 1, 2]).score(*rings(2000, seed=1)))
    assert scores[-1] > scores[0]
    assert model.n_iter_ >= 10


@pytest.mark.parametrize("size", [37, 2500])
def test_a_stream_is_learnt_by_its_cross_entropy(size):
    model = bf.BPLSClassifier((20,), "tanh", loss="cross_entropy", random_state=0)
    for x, y in chunks(20_000, size):
        model.partial_fit(x, y, classes=[0, 1, 2])
    x, y = rings(2000, seed=1)
    assert model.score(x, y) > 0.9
    # The mean probability of each class is about its share of the rows; the mean of the weights lags behind.
    np.testing.assert_allclose(
        model.predict_proba(x).mean(axis=0), np.bincount(y) / len(y), atol=0.1
    )


def test_a_fit_is_continued_by_a_stream_of_the_same_loss():
    x, y = rings(4000)
    model = bf.BPLSClassifier((20,), "tanh", loss="cross_entropy", random_state=0).fit(x, y)
    before = model.score(*rings(2000, seed=1))
    model.partial_fit(*rings(4000, seed=2))
    assert model.score(*rings(2000, seed=1)) > before - 0.02


def test_numbers_are_learnt_too():
    model = bf.BPLSRegressor((30,), random_state=0)
    random = np.random.default_rng(0)
    for _ in range(10):
        x = random.uniform(-2, 2, (2500, 2))
        model.partial_fit(x, 100 + 30 * np.sin(2 * x[:, 0]) * x[:, 1])
    x = random.uniform(-2, 2, (500, 2))
    assert model.score(x, 100 + 30 * np.sin(2 * x[:, 0]) * x[:, 1]) > 0.7


def test_memory_does_not_grow_with_the_rows():
    model = bf.BPLSClassifier((10,), "relu", random_state=0)
    peaks = []
    for turn in range(3):
        tracemalloc.start()
        for x, y in chunks(60_000, 5000, seed=turn):
            model.partial_fit(x, y, classes=[0, 1, 2])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.2 * peaks[1]


@pytest.mark.thorough
def test_ten_million_rows_from_a_generator_leave_resident_memory_flat():
    program = """
        import resource
        import bpls_fast as bf
        from tests.support.samples import rings

        model = bf.BPLSClassifier((20,), "tanh", random_state=0)
        for chunk in range(1000):
            model.partial_fit(*rings(10_000, seed=chunk), classes=[0, 1, 2])
            if chunk in (99, 999):
                print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        print(model.score(*rings(10_000, seed=1000)))
    """
    early, late, score = output_of(run_code(program, timeout=1200)).split()
    print(
        f"{int(early) / 1024:.0f} MiB after a million, {int(late) / 1024:.0f} MiB after ten: {score}"
    )
    assert int(late) <= int(early) + 4096  # KiB
    assert float(score) > 0.9


def test_what_changed_is_forgotten():
    kept = {}
    for forgetting in (0.1, 1.0):
        model = bf.BPLSRegressor((), random_state=0, forgetting=forgetting)
        random = np.random.default_rng(0)
        for turn in range(30):
            x = random.normal(size=(2500, 2))
            model.partial_fit(x, x[:, 0] if turn < 20 else -x[:, 0])
        x = random.normal(size=(500, 2))
        kept[forgetting] = model.score(x, -x[:, 0])
    assert kept[0.1] > 0.9 > kept[1.0]


def test_a_fit_is_gone_on_with():
    x, y = rings(3000)
    model = bf.BPLSClassifier((20,), "tanh", random_state=0, max_iter=3).fit(x, y)
    before = model.score(*rings(2000, seed=1))
    for more in chunks(20_000, 5000, seed=2):
        model.partial_fit(*more)
    assert model.score(*rings(2000, seed=1)) >= before - 0.05
    model.fit(x, y)  # starts anew
    assert model.n_iter_ == 3


def test_weights_count():
    x, y = rings(5000)
    one, other = (bf.BPLSClassifier((10,), "tanh", random_state=0) for _ in range(2))
    one.partial_fit(x, y, classes=[0, 1, 2], sample_weight=np.where(y == 2, 1e-6, 1.0))
    other.partial_fit(x, y, classes=[0, 1, 2])
    assert np.sum(one.predict(x) == 2) < np.sum(other.predict(x) == 2)


def test_columns_far_from_zero_are_no_harm():
    model = bf.BPLSClassifier((20,), "tanh", random_state=0)
    for x, y in chunks(20_000, 2500):
        model.partial_fit((x + 1000).astype(np.float32), y, classes=[0, 1, 2])
    x, y = rings(2000, seed=1)
    assert model.score((x + 1000).astype(np.float32), y) > 0.75


def test_classes_and_labels_that_are_missing_or_unknown_are_named():
    x, y = rings(50)
    with pytest.raises(ValueError, match="classes is None; expected all labels at the first call"):
        bf.BPLSClassifier().partial_fit(x, y)
    model = bf.BPLSClassifier().partial_fit(x, y, classes=[0, 1, 2])
    before = [W.copy() for W in model.network_.weights]
    with pytest.raises(ValueError, match="y holds the label"):
        model.partial_fit(x, y + 1)
    with pytest.raises(ValueError, match=r"classes is .* as before"):
        model.partial_fit(x, y, classes=[0, 1])
    assert all(map(same_bits, before, model.network_.weights))
    with pytest.raises(ValueError, match="The 'forgetting' parameter"):
        bf.BPLSClassifier(forgetting=2).partial_fit(x, y, classes=[0, 1, 2])


def test_a_warm_start_goes_on_where_the_last_fit_ended():
    x, y = rings(800)
    model = bf.BPLSClassifier((15,), "tanh", random_state=0, max_iter=4, warm_start=True)
    first = model.fit(x, y).report_.loss
    assert model.fit(x, y).report_.loss[0] < first[0]
    with pytest.raises(ValueError, match="warm_start is True and y has the classes"):
        model.fit(x, np.array(["a", "b", "c"])[y])
    with pytest.raises(
        ValueError, match=r"go on with is Network\(\[2, 15, 3\].*expected Network\(\[2, 3,"
    ):
        model.set_params(hidden_layer_sizes=(3,)).fit(x, y)
    with pytest.raises(ValueError, match=r"activation='tanh'.*expected.*activation='relu'"):
        model.set_params(hidden_layer_sizes=(15,), activation="relu").fit(x, y)


def test_the_report_of_a_stream_holds_the_sweeps_of_the_latest_call_and_no_idle_time(
    monkeypatch,
):
    x, y = rings(6000)
    model = bf.BPLSClassifier((15,), "tanh", random_state=0)
    first = model.partial_fit(x[:3000], y[:3000], classes=[0, 1, 2]).report_
    sweeps, total = first.iterations, first.seconds["total"]
    assert sweeps == first.best + 1 == len(first.rows) == len(first.loss) > 1
    clock = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + 3600)
    second = model.partial_fit(x[3000:], y[3000:]).report_
    assert second.best + 1 == second.iterations == sweeps + len(second.rows) > sweeps
    assert len(second.loss) == len(second.rows)
    assert total < second.seconds["total"] < 3600
    assert first.iterations == sweeps
    last = str(second).splitlines()[-3]
    assert last.split()[0] == str(second.iterations)
    assert last.endswith("kept")


def test_weights_of_a_stream_that_float32_cannot_hold_are_refused_or_left_out():
    x, y = rings(600)
    x = x.astype(np.float32)
    model = bf.BPLSClassifier((15,), "tanh", random_state=0)
    weights = np.ones(600)
    weights[7] = 1e300
    with pytest.raises(ValueError, match="sample_weight, as float32 like X, contains infinity"):
        model.partial_fit(x, y, [0, 1, 2], weights)
    assert not hasattr(model, "network_")
    weights[7] = 1e-300
    model.partial_fit(x, y, [0, 1, 2], weights)
    others = np.delete(np.arange(600), 7)
    same = bf.BPLSClassifier((15,), "tanh", random_state=0)
    same.partial_fit(x[others], y[others], [0, 1, 2], weights[others])
    assert all(
        np.allclose(a, b, rtol=1e-3, atol=1e-3)
        for a, b in zip(model.network_.weights, same.network_.weights, strict=True)
    )


def test_early_stopping_keeps_the_network_that_does_best_on_what_is_held_out():
    x, y = rings(500)
    noisy = np.where(np.random.default_rng(0).random(500) < 0.3, (y + 1) % 3, y)
    model = bf.BPLSClassifier(
        (60,), "tanh", random_state=0, early_stopping=True, n_iter_no_change=3, max_iter=100
    ).fit(x, noisy)
    assert model.report_.iterations < 100
    assert model.report_.best + 1 == max(model.report_.validation, key=lambda look: look[1])[0]
