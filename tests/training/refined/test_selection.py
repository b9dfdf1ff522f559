"""Settings that are found from the data, and committees of networks that are trained on folds."""

import numpy as np
import pytest

import bpls_fast as bf
from bpls_fast.training.data import Samples
from bpls_fast.training.refined.committee import fit_committee
from bpls_fast.training.refined.cross_entropy import CrossEntropySweep
from bpls_fast.training.refined.selection import FEWEST_ROWS, RUNGS, candidates, folds
from bpls_fast.training.refined.shared_inputs import without
from bpls_fast.training.refined.sweep import RefinedSweep
from tests.support.reference import same_bits
from tests.support.required import real_table
from tests.support.samples import rings
from tests.support.subprocesses import assert_same_output_at_every_thread_count


def networks(count, sizes, activation="tanh", output="softmax"):
    return [bf.Network(sizes, activation, output, seed=seed) for seed in range(count)]


def accuracy(net, x, y):
    return np.mean(net.predict(x) == y)


# ---- folds and candidates


@pytest.mark.parametrize("count", [2, 3, 7])
def test_every_row_is_in_one_fold_and_folds_have_the_same_share_of_each_label(count):
    labels = np.repeat([0, 1, 2], [70, 21, 14])
    samples = Samples(np.zeros((105, 1)), np.eye(3), labels, None)
    parts = folds(samples, count, np.random.default_rng(0))
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(105))
    for part in parts:
        shares = np.bincount(labels[part], minlength=3)
        assert (np.abs(shares - np.array([70, 21, 14]) / count) < 1).all()
        assert without(samples, part).row_count == 105 - len(part)


def test_equal_rows_are_in_one_fold_wherever_they_are():
    X = np.random.default_rng(0).normal(size=(60, 3))
    labels = np.arange(60) % 3
    for dtype in (np.float32, np.float64, np.uint8):
        rows = (100 * np.abs(X)).astype(dtype)
        once, twice = (
            folds(Samples(x, np.eye(3), y, None), 4, np.random.default_rng(0))
            for x, y in ((rows, labels), (np.tile(rows, (2, 1)), np.tile(labels, 2)))
        )
        for part, of_both in zip(once, twice, strict=True):
            np.testing.assert_array_equal(of_both, np.concatenate([part, part + 60]))


def test_folds_of_numbers_have_the_same_distribution():
    T = np.random.default_rng(0).normal(size=(400, 2))
    parts = folds(Samples(T, T, None, None), 4, np.random.default_rng(0))
    assert np.ptp([T[part, 0].mean() for part in parts]) < 0.1


def test_a_loss_or_a_ridge_that_is_given_is_not_chosen():
    samples = Samples(np.zeros((5, 1)), np.eye(3), np.zeros(5, int), None)
    net = bf.Network([1, 2, 3])
    assert {setting.loss for setting in candidates(net, samples, "auto", None)} == {
        "squared",
        "cross_entropy",
    }
    of_one = candidates(net, samples, "cross_entropy", 2.0)
    assert {(setting.loss, setting.eps) for setting in of_one} == {("cross_entropy", 2.0)}
    assert len(of_one) == len(set(of_one)) > 1
    sigmoid = bf.Network([1, 2, 3], output_activation="sigmoid")
    assert {setting.loss for setting in candidates(sigmoid, samples, "auto", None)} == {"squared"}


# ---- fit_refined(loss="auto")


def test_the_report_says_what_was_tried_and_what_was_chosen():
    x, y = rings(400)
    net = bf.Network([2, 20, 3], activation="tanh", seed=0)
    report = bf.fit_refined(net, x, y, loss="auto")
    assert len(report.trials) == 4
    scores = [float(trial.split("score ")[1].split()[0]) for trial in report.trials]
    assert scores == sorted(scores)
    sweeps = int(report.trials[-1].split("after ")[1].split()[0])
    assert report.iterations == sweeps <= RUNGS[-1]
    assert report.rows == [400] * sweeps
    assert f"chosen {report.trials[-1]}" in str(report)
    assert f"eps {report.eps:g}" in report.trials[-1]


def test_noise_is_fitted_less_than_by_a_fixed_number_of_sweeps():
    random = np.random.default_rng(0)
    x, x_test = random.normal(size=(300, 10)), random.normal(size=(2000, 10))
    noise = random.integers(0, 2, 300)
    losses = []
    for loss in ("cross_entropy", "auto"):
        net = bf.Network([10, 50, 2], activation="tanh", seed=0)
        bf.fit_refined(net, x, noise, loss=loss, max_sweeps=30 if loss != "auto" else None)
        losses.append(-np.log(net.forward(x_test)).mean())
    assert losses[1] < losses[0]
    assert losses[1] < 0.75


def test_many_classes_choose_the_cross_entropy():
    X, y = real_table("cls_letter")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    net = bf.Network([16, 60, 26], activation="tanh", seed=0)
    report = bf.fit_refined(net, X[:6000], y[:6000], loss="auto")
    assert report.trials[-1].startswith("cross_entropy")
    assert accuracy(net, X[6000:], y[6000:]) > 0.9


def test_few_rows_are_fitted_as_by_the_squared_loss():
    x, y = rings(FEWEST_ROWS - 1)
    nets = [bf.Network([2, 5, 3], activation="tanh", seed=0) for _ in range(2)]
    reports = [
        bf.fit_refined(net, x, y, loss=loss)
        for net, loss in zip(nets, ("auto", "squared"), strict=True)
    ]
    assert reports[0].iterations == reports[1].iterations
    assert reports[0].trials == []
    assert (nets[0].predict(x) == nets[1].predict(x)).mean() > 0.8


def test_the_most_sweeps_are_an_upper_limit():
    x, y = rings(300)
    net = bf.Network([2, 10, 3], activation="tanh", seed=0)
    assert bf.fit_refined(net, x, y, loss="auto", max_sweeps=5).iterations <= 5


def test_numbers_choose_a_ridge_and_a_length():
    random = np.random.default_rng(0)
    x = random.normal(size=(500, 8))
    y = x[:, :1] + 2 * random.normal(size=(500, 1))
    x_test = random.normal(size=(2000, 8))
    errors = []
    for loss in ("squared", "auto"):
        net = bf.Network([8, 60, 1], "tanh", "identity", seed=0)
        report = bf.fit_refined(net, x, y, loss=loss, max_sweeps=60)
        errors.append(np.square(net.forward(x_test) - x_test[:, :1]).mean())
    assert "squared, eps" in report.trials[-1]
    assert errors[1] < errors[0]


def test_the_bits_do_not_depend_on_the_process_or_its_threads():
    code = """
        import hashlib
        import numpy as np
        import bpls_fast as bf
        from bpls_fast.training.refined.committee import fit_committee
        random = np.random.default_rng(0)
        x = random.normal(size=(900, 10)).astype(np.float32)
        y = (x[:, :5] ** 2).sum(axis=1) > 4
        nets = [bf.Network([10, 20, 2], activation="tanh", seed=seed) for seed in range(2)]
        nets.append(fit_committee(nets, x, y, max_sweeps=15).network)
        bf.fit_refined(nets[0], x, y, loss="auto", max_sweeps=15)
        for net in nets:
            print(hashlib.sha256(b"".join(W.tobytes() for W in net.weights)).hexdigest())
    """
    assert_same_output_at_every_thread_count(code)


def test_a_candidate_that_fails_is_not_chosen(monkeypatch):
    def failing(self, *given, **options):
        raise np.linalg.LinAlgError("no factor")

    x, y = rings(100)
    monkeypatch.setattr(CrossEntropySweep, "sweep", failing)
    net = bf.Network([2, 5, 3], activation="tanh", seed=0)
    report = bf.fit_refined(net, x, y, loss="auto")
    assert report.trials[-1].startswith("squared")
    monkeypatch.setattr(RefinedSweep, "sweep", failing)
    with pytest.raises(np.linalg.LinAlgError, match="no factor"):
        bf.fit_refined(net, x, y, loss="auto")


# ---- committees


def test_a_committee_is_one_network_that_is_better_than_single_ones():
    X, y = real_table("cls_letter")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    train, test = slice(0, 3000), slice(3000, None)
    nets = networks(4, [16, 30, 26])
    committee = fit_committee(nets, X[train], y[train])
    assert committee.network.layer_sizes == (16, 120, 26)
    singles = []
    for net in nets:
        bf.fit_refined(net, X[train], y[train], loss="auto")
        singles.append(accuracy(net, X[test], y[test]))
    assert accuracy(committee.network, X[test], y[test]) > np.max(singles)


def test_out_of_fold_outputs_estimate_the_accuracy_on_other_rows():
    x, y = rings(3000)
    flipped = np.random.default_rng(3).random(len(y)) < 0.2
    noisy = np.where(flipped, (y + 1) % 3, y)
    committee = fit_committee(networks(4, [2, 20, 3]), x, noisy)
    found = np.mean(committee.out_of_fold.argmax(axis=1) == noisy)
    assert committee.report.validation[-1][1] == pytest.approx(found)
    x_test, y_test = rings(4000, seed=1)
    # Of the test rows no label is flipped: a fifth of these would be missed.
    assert found == pytest.approx(0.8 * accuracy(committee.network, x_test, y_test), abs=0.04)


def test_a_committee_of_numbers_is_fitted():
    x = np.random.default_rng(0).uniform(-2, 2, (1500, 2))
    Y = np.c_[np.sin(2 * x[:, 0]), x[:, 1] ** 2]
    nets = networks(3, [2, 20, 2], "relu", "identity")
    before = [W.copy() for W in nets[0].weights]
    committee = fit_committee(nets, x, Y)
    assert np.square(committee.network.forward(x) - Y).mean() < 0.02
    assert committee.report.validation[-1][1] > 0.97
    assert all(map(same_bits, nets[0].weights, before))


def test_weights_of_rows_and_classes_matter_to_a_committee():
    x, y = rings(1000)
    noisy = np.where(np.random.default_rng(1).random(len(y)) < 0.3, 0, y)
    shares = []
    for class_weight in (None, {2: 20.0}):
        committee = fit_committee(
            networks(2, [2, 10, 3]),
            x,
            noisy,
            class_weight=class_weight,
            sample_weight=np.linspace(0.5, 1, len(x)),
        )
        shares.append(np.mean(committee.network.predict(x)[y == 2] == 2))
    assert shares[1] > shares[0]


@pytest.mark.parametrize("rows", [60, 300, 3000])
def test_a_committee_of_noise_predicts_the_mean(rows):
    random = np.random.default_rng(rows)
    x, x_test = random.normal(size=(rows, 10)), random.normal(size=(2000, 10))
    numbers = 5 + random.normal(size=(rows, 1))
    net = fit_committee(networks(4, [10, 30, 1], output="identity"), x, numbers).network
    assert np.square(net.forward(x_test) - 5).mean() < 0.1
    labels = random.integers(0, 2, rows)
    net = fit_committee(networks(4, [10, 30, 2]), x, labels).network
    assert -np.log(net.forward(x_test)).mean() < np.log(2) + 0.05


@pytest.mark.parametrize(
    ("nets", "options", "message"),
    [
        (networks(2, [2, 5, 3], "softmax"), {}, "hidden activations are softmax"),
        (networks(2, [2, 5, 3]), {"loss": "hinge"}, "loss is 'hinge'; expected 'squared'"),
        (networks(2, [2, 5, 3]), {"max_sweeps": 0}, "max_sweeps is 0; expected a whole number"),
        (networks(61, [2, 5, 3]), {}, "61 networks are trained on n_samples = 60 rows"),
        (networks(2, [2, 5, 3]), {"eps": -1.0}, "eps is -1.0; expected a finite number >= 0"),
    ],
)
def test_wrong_arguments_are_named(nets, options, message):
    x, y = rings(60)
    with pytest.raises(ValueError, match=message):
        fit_committee(nets, x, y, **options)
