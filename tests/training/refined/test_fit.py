"""Refined sweeps: what a fit promises, how far it goes, and how it ends."""

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.training.stopping import FEWEST_SWEEPS, ROWS_PER_SWEEP
from tests.support.reference import same_bits
from tests.support.samples import rings
from tests.support.subprocesses import assert_same_output_at_every_thread_count

HIDDEN = ["sigmoid", "tanh", "relu", "leaky_relu", "elu", "softplus", "softmax"]
PHASES = ("start", "forward", "gram", "solve", "target", "step")


def accuracy(net, x, y):
    return np.mean(net.predict(x) == y)


# ---- what every fit promises


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("widths", [(20,), (20, 15), (20, 15, 10)])
def test_every_activation_learns_at_any_depth_from_saturated_weights(name, widths):
    x, y = rings(1500)
    net = bf.Network([2, *widths, 3], activation=name, seed=0, low=-30.0, high=30.0)
    bf.fit_refined(net, x, y, max_sweeps=40)
    linear = bf.Network([2, 3])
    bf.fit_refined(linear, x, y)
    assert accuracy(net, x, y) > max(0.7, accuracy(linear, x, y) + 0.2)


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("seed", range(3))
def test_the_loss_never_rises_from_sweep_to_sweep_over_the_same_rows(name, seed):
    x, y = rings(200, seed)
    net = bf.Network([2, 8, 6, 3], activation=name, seed=seed)
    report = bf.fit_refined(net, x, y, max_sweeps=25, tol=0)
    assert len(report.loss) > 3
    assert (np.diff(report.loss) <= 1e-12 * np.array(report.loss[:-1])).all()


def test_the_bits_do_not_depend_on_the_process_or_its_threads():
    code = """
        import hashlib
        import numpy as np
        import bpls_fast as bf
        random = np.random.default_rng(0)
        x = random.integers(0, 256, (9000, 50), dtype=np.uint8)
        y = (x[:, :5].sum(axis=1) > x[:, 5:10].sum(axis=1)).astype(int)
        for kind in (np.uint8, np.float32):
            net = bf.Network([50, 20, 10, 2], activation="tanh", seed=0)
            bf.fit_refined(net, x.astype(kind), y, max_sweeps=8)
            print(hashlib.sha256(b"".join(W.tobytes() for W in net.weights)).hexdigest())
    """
    assert_same_output_at_every_thread_count(code)


def test_another_seed_gives_another_order_of_the_rows():
    x, y = rings(12000)
    weights = []
    for seed in (0, 0, 1):
        net = bf.Network([2, 10, 3], activation="tanh", seed=0)
        bf.fit_refined(net, x, y, max_sweeps=5, seed=seed)
        weights.append(net.weights[0])
    assert same_bits(weights[0], weights[1])
    assert not same_bits(weights[0], weights[2])


def test_weights_are_repetitions_and_none_is_as_if_the_row_were_not_there():
    x, y = rings(120)
    counts = np.random.default_rng(0).integers(0, 4, len(x))
    nets = []
    for rows, labels, weights in (
        (x, y, 3.0 * counts / 3),
        (np.repeat(x, counts, axis=0), np.repeat(y, counts), None),
        (x[counts > 0], y[counts > 0], counts[counts > 0]),
    ):
        nets.append(bf.Network([2, 12, 8, 3], activation="tanh", seed=0))
        bf.fit_refined(nets[-1], rows, labels, sample_weight=weights, max_sweeps=4)
    for net in nets[1:]:
        np.testing.assert_allclose(net.forward(x), nets[0].forward(x), rtol=1e-6, atol=1e-8)


def test_a_class_that_weighs_more_is_missed_less():
    x, y = rings(1000)
    noisy = np.where(np.random.default_rng(1).random(len(y)) < 0.3, 0, y)
    shares = []
    for class_weight in (None, {2: 20.0}):
        net = bf.Network([2, 10, 3], activation="tanh", seed=0)
        bf.fit_refined(net, x, noisy, class_weight=class_weight)
        shares.append(np.mean(net.predict(x)[y == 2] == 2))
    assert shares[1] > shares[0]


@pytest.mark.parametrize("output", ["identity", "sigmoid", "tanh", "softplus"])
def test_numbers_are_fitted_through_any_output_activation(output):
    x = np.random.default_rng(0).uniform(-2, 2, (600, 2))
    wave = np.c_[np.sin(x[:, 0] * 2), np.cos(x[:, 1])]
    Y = 0.3 + 0.2 * wave
    net = bf.Network([2, 30, 2], activation="tanh", output_activation=output, seed=0)
    bf.fit_refined(net, x, Y, max_sweeps=40)
    assert np.abs(net.forward(x) - Y).max() < 0.05


@pytest.mark.parametrize("output", ["softmax", "sigmoid", "identity"])
def test_labels_of_any_type_are_learnt_by_any_outputs(output):
    x, y = rings(600)
    names = np.array(["in", "between", "out"])[y]
    net = bf.Network([2, 20, 3], activation="tanh", output_activation=output, seed=0)
    bf.fit_refined(net, x, names, max_sweeps=30)
    assert accuracy(net, x, names) > 0.9


def test_softmax_outputs_are_probabilities_that_can_be_trusted():
    x, y = rings(3000)
    flipped = np.random.default_rng(2).random(len(y)) < 0.2
    noisy = np.where(flipped, (y + 1) % 3, y)
    net = bf.Network([2, 20, 3], activation="tanh", seed=0)
    bf.fit_refined(net, x, noisy)
    p = net.forward(x)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    # Calibrated: mean confidence equals accuracy.
    assert p.max(axis=1).mean() == pytest.approx(np.mean(p.argmax(axis=1) == noisy), abs=0.05)


# ---- bytes, memory, order in memory


def test_bytes_are_learnt_as_floats_between_0_and_1_are():
    random = np.random.default_rng(0)
    x = random.integers(0, 256, (600, 30), dtype=np.uint8)
    y = (x[:, :3].sum(axis=1) > 380).astype(int)
    nets = []
    for rows in (x, x.astype(np.float32) / np.float32(255)):
        nets.append(bf.Network([30, 10, 2], activation="tanh", seed=0))
        bf.fit_refined(nets[-1], rows, y, max_sweeps=5)
    p, q = nets[0].forward(x), nets[1].forward(x.astype(np.float32) / np.float32(255))
    np.testing.assert_allclose(p, q, atol=2e-3)


def test_strides_and_read_only_rows_change_nothing():
    x, y = rings(300)
    results = []
    frozen = x.copy()
    frozen.flags.writeable = False
    for rows in (x, np.asfortranarray(x), np.repeat(x, 2, axis=1)[:, ::2], frozen):
        net = bf.Network([2, 9, 3], activation="elu", seed=0)
        bf.fit_refined(net, rows, y)
        results.append(net.weights)
    for weights in results[1:]:
        assert all(map(same_bits, weights, results[0]))


# ---- how far it goes, and how it ends


def test_passes_and_sweeps_are_counted():
    x, y = rings(12_000)
    net = bf.Network([2, 10, 3], activation="tanh", seed=0)
    report = bf.fit_refined(net, x, y, max_passes=1.5, tol=0)
    assert report.rows == [2500] * 7  # an eighth would be more than 18000 rows
    assert report.stopped == "1.5 passes over the data"
    report = bf.fit_refined(net, x, y, max_sweeps=3, chunk_rows=1000)
    assert (report.iterations, report.rows, report.stopped) == (3, [1000] * 3, "3 sweeps")
    few = bf.fit_refined(net, x[:400], y[:400], tol=0)
    assert few.rows == [400] * max(FEWEST_SWEEPS, 400 // ROWS_PER_SWEEP)


def test_the_report_has_a_time_for_every_phase_and_prints():
    x, y = rings(300)
    net = bf.Network([2, 10, 3], activation="tanh", seed=0)
    report = bf.fit_refined(net, x, y)
    *phases, total = report.seconds
    assert tuple(phases) == PHASES
    assert total == "total"
    assert 0 < sum(report.seconds[name] for name in PHASES) <= report.seconds["total"]
    assert str(report).splitlines()[0] == f"refined sweeps: {report.stopped}"
    assert str(report).count("kept") == 1


def test_what_is_held_out_chooses_the_network_and_ends_the_fit():
    x, y = rings(400)
    noisy = np.where(np.random.default_rng(0).random(len(y)) < 0.3, (y + 1) % 3, y)
    net = bf.Network([2, 40, 3], activation="tanh", seed=0)
    report = bf.fit_refined(
        net, x, noisy, validation_fraction=0.25, patience=4, max_sweeps=200, output_eps=1e-8, tol=0
    )
    sweeps, scores = zip(*report.validation, strict=True)
    assert report.rows[0] == 300
    assert report.best + 1 == sweeps[np.argmax(scores)]
    assert report.iterations == report.best + 5
    assert "without a better network" in report.stopped


def test_a_callback_sees_the_network_and_can_stop():
    x, y = rings(9000)
    seen = []

    def look(report):
        seen.append(accuracy(report.network, x, y))
        return len(seen) == 3

    net = bf.Network([2, 10, 3], activation="tanh", seed=0)
    report = bf.fit_refined(net, x, y, callback=look)
    assert report.stopped == "the callback asked to stop"
    assert len(seen) == report.iterations == 3
    assert accuracy(net, x, y) == seen[-1]


def test_a_network_can_be_trained_further():
    x, y = rings(800)
    net = bf.Network([2, 15, 3], activation="tanh", seed=0)
    first = bf.fit_refined(net, x, y, max_sweeps=6, output_eps=1e-6)
    again = bf.fit_refined(net, x, y, max_sweeps=6, output_eps=1e-6, start="network")
    assert again.loss[0] <= first.loss[-1] * (1 + 1e-9)


def test_without_hidden_layers_it_is_linear_regression():
    random = np.random.default_rng(0)
    X = random.normal(5, [1, 10, 0.1], size=(200, 3))
    Y = X @ random.normal(size=(3, 2)) + 7
    net = bf.Network([3, 2], output_activation="identity")
    bf.fit_refined(net, X, Y, standardize=True, output_eps=1e-12)
    np.testing.assert_allclose(net.forward(X), Y, rtol=1e-6)


@pytest.mark.parametrize("standardize", [False, True])
def test_columns_and_targets_that_do_not_vary_are_no_harm(standardize):
    x, y = rings(200)
    x = np.c_[x, np.zeros(200), np.full(200, 3.0), x[:, 0]]
    net = bf.Network([5, 10, 3], activation="relu", seed=0)
    bf.fit_refined(net, x, y, standardize=standardize, max_sweeps=20)
    assert accuracy(net, x, y) > 0.8
    flat = bf.Network([5, 10, 1], activation="relu", output_activation="identity", seed=0)
    bf.fit_refined(flat, x, np.full(200, 2.5), standardize=standardize)
    np.testing.assert_allclose(flat.forward(x), 2.5, rtol=2e-3)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_very_few_rows_are_learnt_by_heart(rows):
    x, y = np.eye(3)[:rows], np.arange(rows)
    net = bf.Network([3, 5, 3], activation="tanh", seed=0)
    bf.fit_refined(net, x, y)
    assert (net.predict(x) == y).all()


def test_numbers_that_grow_too_large_end_the_fit_and_leave_finite_weights():
    x, y = rings(300)
    net = bf.Network([2, 10, 3], activation="relu", seed=0)
    bf.fit_refined(net, x * 1e150, y, max_sweeps=5)
    assert all(np.isfinite(W).all() for W in net.weights)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_passes": 0}, "max_passes is 0; expected a number above 0"),
        ({"max_sweeps": 0}, "max_sweeps is 0; expected a whole number >= 1"),
        ({"max_sweeps": 2.5}, "max_sweeps is 2.5; expected a whole number >= 1"),
        ({"chunk_rows": -1}, "chunk_rows is -1; expected a whole number >= 1"),
        ({"patience": None}, "patience is None; expected a whole number >= 1"),
        ({"output_eps": -1.0}, "output_eps is -1.0; expected a finite number >= 0"),
        ({"tol": np.nan}, "tol is nan; expected a finite number >= 0"),
        ({"eps": -1.0}, "eps is -1.0; expected a finite number >= 0"),
        ({"start": "zero"}, "start is 'zero'; expected 'scaled' or 'network'"),
        ({"validation_fraction": 1.0}, "validation_fraction is 1.0; expected a number >= 0"),
        ({"sample_weight": [1.0]}, r"sample_weight has shape \(1,\); expected \(60,\)"),
        ({"class_weight": "heavy"}, "class_weight is 'heavy'; expected 'balanced'"),
    ],
)
def test_wrong_arguments_are_named_and_the_network_stays_as_it_was(arguments, message):
    x, y = rings(60)
    net = bf.Network([2, 5, 3], seed=0)
    before = [W.copy() for W in net.weights]
    with pytest.raises(ValueError, match=message):
        bf.fit_refined(net, x, y, **arguments)
    assert all(map(same_bits, net.weights, before))
    assert net.classes is None


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.full((3, 2), np.nan), [0, 1, 2], "X contains NaN"),
        (np.zeros((0, 2)), [], "X has no rows"),
        (np.zeros((3, 4)), [0, 1, 2], "X has 4 columns; expected 2"),
        (np.zeros((3, 2)), [0, 1], "labels has 2 rows; expected 3"),
        (np.zeros((3, 2)), np.zeros((3, 2)), "Y has 2 columns; expected 3"),
    ],
)
def test_wrong_data_is_named(x, y, message):
    with pytest.raises(ValueError, match=message):
        bf.fit_refined(bf.Network([2, 5, 3]), x, y)


def test_class_weights_need_classes():
    net = bf.Network([2, 5, 1], activation="tanh", output_activation="identity")
    with pytest.raises(ValueError, match="class_weight is 'balanced'; expected None"):
        bf.fit_refined(net, np.eye(2), [1.0, 2.0], class_weight="balanced")
