"""Algorithm 2: labels of every type, and weights of rows and classes."""

import datetime
import enum

import numpy as np
import pytest

import bpls_fast as bf
from tests.support.samples import blobs

# Labels.


class Colour(enum.IntEnum):
    RED = 5
    BLUE = 7
    GREEN = 9


LABELS = {
    "int64 from 0": np.array([0, 1, 2]),
    "int8 not from 0": np.array([-3, 5, 100], np.int8),
    "uint8": np.array([7, 200, 255], np.uint8),
    "float": np.array([0.5, 1.5, 2.5]),
    "str": np.array(["cat", "dog", "fish"]),
    "bytes": np.array([b"cat", b"dog", b"fish"]),
    "str objects": np.array(["cat", "dog", "fish"], object),
    "dates": np.array(["2024-01-01", "2024-01-02", "2025-01-01"], "datetime64[D]"),
    "date objects": np.array([datetime.date(2024, 1, day) for day in (1, 2, 3)], object),
    "enum members": np.array(list(Colour), object),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_type_are_predicted_as_they_were_given(kind):
    X, index = blobs(spread=0.2)
    names = LABELS[kind]
    net = bf.Network([2, 8, 3], "sigmoid")
    bf.fit_classifier(net, X, names[index])
    predicted = net.predict(X)
    assert predicted.dtype == names.dtype
    assert (predicted == names[index]).mean() > 0.95
    assert list(net.classes) == sorted(names)


def test_boolean_labels_are_two_classes():
    X, index = blobs(classes=2)
    net = bf.Network([2, 8, 2], "sigmoid")
    bf.fit_classifier(net, X, index == 1)
    assert net.classes.tolist() == [False, True]
    assert (net.predict(X) == (index == 1)).mean() > 0.9


def test_labels_may_be_a_list_or_a_column():
    X, index = blobs()
    nets = [bf.Network([2, 8, 3], "sigmoid") for _ in range(3)]
    for net, labels in zip(nets, (index, index.tolist(), index[:, np.newaxis]), strict=True):
        bf.fit_classifier(net, X, labels)
    assert len({net.weights[0].tobytes() for net in nets}) == 1


def test_the_names_of_the_classes_change_nothing_else():
    X, index = blobs()
    nets = [bf.Network([2, 8, 3], "sigmoid") for _ in range(2)]
    bf.fit_classifier(nets[0], X, index)
    bf.fit_classifier(nets[1], X, np.array(["a", "b", "c"])[index])
    for A, B in zip(nets[0].weights, nets[1].weights, strict=True):
        assert A.tobytes() == B.tobytes()


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float16, np.float64])
def test_whole_numbers_of_any_type_may_leave_classes_out(dtype):
    X, index = blobs(classes=2)
    net = bf.Network([2, 8, 5], "sigmoid")
    bf.fit_classifier(net, X, (3 * index).astype(dtype))
    assert net.classes.dtype == dtype
    assert net.classes.tolist() == [0, 1, 2, 3, 4]
    assert set(net.predict(X)) == {0, 3}


def test_more_outputs_than_the_type_of_the_labels_can_count_are_named_in_a_wider_one():
    X, index = blobs(classes=2)
    net = bf.Network([2, 300], output_activation="identity")
    bf.fit_classifier(net, X, index.astype(np.uint8))
    assert net.classes.tolist() == list(range(300))


def test_hundreds_of_classes_train_without_a_floor_being_given():
    labels = np.arange(1200) % 150
    X = np.eye(150)[labels] + 0.05 * np.random.default_rng(0).normal(size=(1200, 150))
    for activation in ("softmax", "sigmoid"):
        net = bf.Network([150, 150], output_activation=activation)
        bf.fit_classifier(net, X, labels)
        assert (net.predict(X) == labels).mean() > 0.99


@pytest.mark.parametrize(("classes", "floor"), [(2, 1e-2), (50, 1e-2), (51, 0.5 / 51)])
def test_the_default_floor_shrinks_with_the_number_of_classes(classes, floor):
    X, labels = blobs(classes=2)
    nets = [bf.Network([2, classes], seed=0) for _ in range(2)]
    bf.fit_classifier(nets[0], X, labels)
    bf.fit_classifier(nets[1], X, labels, label_floor=floor)
    assert nets[0].weights[0].tobytes() == nets[1].weights[0].tobytes()


# Weights.


@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"class_weight": {0: 3.0}}])
def test_a_weight_counts_like_copies_of_the_row(options):
    X, labels = blobs(200)
    times = np.random.default_rng(1).integers(0, 4, 200)
    weighted, repeated = (bf.Network([2, 6, 3], "sigmoid") for _ in range(2))
    fixed = {"margin": 0.05, "max_iter": 3, **options}
    a = bf.fit_classifier(weighted, X, labels, sample_weight=times, **fixed)
    b = bf.fit_classifier(repeated, X.repeat(times, axis=0), labels.repeat(times), **fixed)
    np.testing.assert_allclose(weighted.decision(X), repeated.decision(X), atol=1e-5)
    assert a.accuracy == pytest.approx(b.accuracy)


def test_a_class_weight_multiplies_the_weights_of_its_rows():
    X, labels = blobs()
    names = np.array(["a", "b", "c"])
    one, other = (bf.Network([2, 6, 3], "sigmoid") for _ in range(2))
    bf.fit_classifier(one, X, names[labels], class_weight={"b": 4.0})
    bf.fit_classifier(other, X, names[labels], sample_weight=np.where(labels == 1, 4.0, 1.0))
    assert one.weights[0].tobytes() == other.weights[0].tobytes()


def test_balanced_classes_weigh_the_same():
    X, labels = blobs(400, 2, spread=1.0)
    keep = (labels == 0) | (np.arange(400) % 8 == 0)
    X, labels = X[keep], labels[keep]
    plain, balanced = (bf.Network([2, 6, 2], "sigmoid") for _ in range(2))
    bf.fit_classifier(plain, X, labels)
    report = bf.fit_classifier(balanced, X, labels, class_weight="balanced")
    recalls = [(balanced.predict(X[labels == k]) == k).mean() for k in (0, 1)]
    assert max(report.accuracy) == pytest.approx(np.mean(recalls), abs=1e-6)
    assert (balanced.predict(X) == 1).sum() > (plain.predict(X) == 1).sum()


def test_rows_of_no_weight_do_not_count():
    X, labels = blobs(100)
    weights = np.arange(100) % 2
    wrong = np.where(weights, labels, 2 - labels)
    nets = [bf.Network([2, 6, 3], "sigmoid") for _ in range(2)]
    reports = [
        bf.fit_classifier(net, X, seen, sample_weight=weights, margin=0.05, max_iter=3)
        for net, seen in zip(nets, (labels, wrong), strict=True)
    ]
    assert nets[0].weights[0].tobytes() == nets[1].weights[0].tobytes()
    assert reports[0].accuracy == reports[1].accuracy


def test_the_margin_is_searched_where_the_weight_is():
    X, labels = blobs(20_000)
    weights = np.zeros(20_000)
    weights[[1, 7, 9]] = 1  # none of them among 5000 rows at equal distances
    net = bf.Network([2, 6, 3], "sigmoid")
    report = bf.fit_classifier(net, X, labels, sample_weight=weights)
    assert max(report.accuracy) == 1.0
