"""Whole fits on the simulated GPU, against the same fits on the CPU."""

import numpy as np
import pytest

import bpls_fast as bf
import bpls_fast.training.refined.shared_inputs as shared_inputs
import bpls_fast.training.solvers as solvers
from bpls_fast.cuda import array, runtime
from bpls_fast.cuda.array import Array, HostRows, asarray
from bpls_fast.cuda.device import products
from bpls_fast.training.refined.committee import fit_committee
from tests.support.reference import same_bits


def rings(dtype, count=48):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(count, 3))
    labels = np.array(["out", "in"])[((X**2).sum(axis=1) < 2).astype(int)]
    if dtype == np.uint8:
        return np.clip(64 * X + 128, 0, 255).astype(np.uint8), labels
    return X.astype(dtype), labels


def assert_same_network(gpu, cpu, dtype):
    tolerance = {np.float64: 1e-7, np.float32: 2e-2, np.uint8: 2e-2}[dtype]
    for found, expected in zip(gpu.weights, cpu.weights, strict=True):
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


def both(fit, make, *data, **options):
    """Fit twice, and return the networks and reports of both backends."""
    results = []
    for backend in ("cuda", "cpu"):
        net = make()
        results.append((net, fit(net, *data, backend=backend, **options)))
    return results


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "softplus", "leaky_relu", "elu"])
@pytest.mark.parametrize("weighted", [False, True])
def test_fit_injective_is_that_of_the_cpu(activation, weighted):
    X = rings(np.float64)[0]
    Y = np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], axis=1)
    weight = np.linspace(0.5, 1.5, len(X)) if weighted else None

    def make():
        return bf.Network([3, 6, 2], activation=activation, output_activation="identity", seed=1)

    (gpu, report), (cpu, expected) = both(
        bf.fit_injective, make, X, Y, sample_weight=weight, eps=1e-4, standardize=weighted
    )
    assert_same_network(gpu, cpu, np.float64)
    np.testing.assert_allclose(report.loss, expected.loss, rtol=1e-6)
    assert (report.backend, expected.backend) == ("cuda", "cpu")
    assert report.candidates == expected.candidates


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
def test_fit_classifier_is_that_of_the_cpu(dtype):
    X, labels = rings(dtype)

    def make():
        return bf.Network([3, 6, 2], activation="softmax", seed=2)

    (gpu, report), (cpu, expected) = both(
        bf.fit_classifier, make, X, labels, eps=1e-3, max_iter=4, margin=0.02, full_sweeps=2
    )
    assert report.misses == expected.misses
    assert_same_network(gpu, cpu, dtype)
    assert (gpu.predict(X) == cpu.predict(X)).mean() > 0.95


@pytest.mark.parametrize(
    "options", [{"target": "per_output", "choose_output": "label"}, {"resolve": True}]
)
def test_the_options_of_algorithm_2_are_those_of_the_cpu(options):
    X, labels = rings(np.float64)

    def make():
        return bf.Network([3, 5, 2], activation="sigmoid", seed=2)

    (gpu, report), (cpu, expected) = both(
        bf.fit_classifier, make, X, labels, eps=1e-3, max_iter=3, class_weight="balanced", **options
    )
    assert report.misses == expected.misses
    assert report.margins == expected.margins
    assert_same_network(gpu, cpu, np.float64)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
def test_fit_refined_is_that_of_the_cpu(dtype):
    X, labels = rings(dtype)

    def make():
        return bf.Network([3, 5, 4, 2], activation=["tanh", "softmax"], seed=2)

    (gpu, report), (cpu, expected) = both(bf.fit_refined, make, X, labels, max_sweeps=3)
    # Rounding to float32 grows by the condition of the output layer's system from sweep to sweep.
    np.testing.assert_allclose(
        report.loss, expected.loss, rtol=1e-8 if dtype == np.float64 else 3e-3
    )
    assert_same_network(gpu, cpu, dtype)
    assert report.backend == "cuda"


@pytest.mark.parametrize("hidden", [[4], [4, 3]], ids=str)
def test_refined_sweeps_over_weighted_chunks_are_those_of_the_cpu(hidden):
    X, labels = rings(np.float64, 60)
    weight = np.linspace(0.5, 1.5, len(X))

    def make():
        return bf.Network([3, *hidden, 2], activation="relu", seed=2)

    options = {
        "chunk_rows": 24,
        "max_sweeps": 3,
        "sample_weight": weight,
        "validation_fraction": 0.2,
    }
    (gpu, report), (cpu, expected) = both(bf.fit_refined, make, X, labels, **options)
    np.testing.assert_allclose(report.loss, expected.loss, rtol=1e-8)
    np.testing.assert_allclose(report.validation, expected.validation, rtol=1e-8)
    assert_same_network(gpu, cpu, np.float64)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
def test_cross_entropy_sweeps_are_those_of_the_cpu(dtype):
    X, labels = rings(dtype)

    def make():
        return bf.Network([3, 5, 4, 2], activation=["tanh", "softmax"], seed=2)

    options = {"loss": "cross_entropy", "max_sweeps": 3, "decay": 1e-3}
    (gpu, report), (cpu, expected) = both(bf.fit_refined, make, X, labels, **options)
    np.testing.assert_allclose(
        report.loss, expected.loss, rtol=1e-8 if dtype == np.float64 else 3e-3
    )
    assert_same_network(gpu, cpu, dtype)
    assert report.backend == "cuda"


@pytest.mark.parametrize("hidden", [[], [4]], ids=str)
def test_cross_entropy_sweeps_over_weighted_chunks_are_those_of_the_cpu(hidden):
    X, labels = rings(np.float64, 60)
    weight = np.linspace(0.5, 1.5, len(X))

    def make():
        return bf.Network([3, *hidden, 2], activation="relu", seed=2)

    options = {
        "loss": "cross_entropy",
        "chunk_rows": 24,
        "max_sweeps": 3,
        "sample_weight": weight,
        "validation_fraction": 0.2,
    }
    (gpu, report), (cpu, expected) = both(bf.fit_refined, make, X, labels, **options)
    np.testing.assert_allclose(report.loss, expected.loss, rtol=1e-8)
    np.testing.assert_allclose(report.validation, expected.validation, rtol=1e-8)
    assert_same_network(gpu, cpu, np.float64)


def test_what_is_found_from_the_data_is_what_the_cpu_finds():
    X, labels = rings(np.float64)

    def make(seed=2):
        return bf.Network([3, 4, 2], activation="tanh", seed=seed)

    options = {"loss": "auto", "max_sweeps": 2}
    (gpu, report), (cpu, expected) = both(bf.fit_refined, make, X, labels, **options)
    assert report.trials == expected.trials
    assert_same_network(gpu, cpu, np.float64)
    on_gpu, on_cpu = (
        fit_committee([make(0), make(1)], X, labels, max_sweeps=2, backend=backend)
        for backend in ("cuda", "cpu")
    )
    assert_same_network(on_gpu.network, on_cpu.network, np.float64)
    np.testing.assert_allclose(on_gpu.out_of_fold, on_cpu.out_of_fold, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("columns", [40, 60])
def test_components_that_fits_share_are_what_the_cpu_finds(columns, monkeypatch):
    monkeypatch.setattr(shared_inputs, "NARROW", 8)
    monkeypatch.setattr(shared_inputs, "MANY_COLUMNS", 50)
    monkeypatch.setattr(shared_inputs, "GRAM_PASSES", 0)
    random = np.random.default_rng(0)
    hidden = random.normal(size=(48, 2))
    X = hidden @ random.normal(size=(2, columns)) + 0.01 * random.normal(size=(48, columns))
    labels = (hidden[:, 0] > 0).astype(int)

    def nets():
        return [bf.Network([columns, 4, 2], activation="tanh", seed=seed) for seed in range(3)]

    on_gpu, on_cpu = (
        fit_committee(nets(), X, labels, max_sweeps=2, standardize=True, backend=backend)
        for backend in ("cuda", "cpu")
    )
    np.testing.assert_allclose(on_gpu.out_of_fold, on_cpu.out_of_fold, rtol=1e-5, atol=1e-6)


def test_refined_sweeps_fit_numbers_and_networks_without_hidden_layers():
    X = rings(np.float64)[0]
    Y = X[:, :1] * 2 - X[:, 1:2]
    for sizes in ([3, 4, 1], [3, 1]):

        def make(sizes=sizes):
            return bf.Network(sizes, activation="tanh", output_activation="identity", seed=1)

        (gpu, _), (cpu, _) = both(bf.fit_refined, make, X, Y, max_sweeps=2)
        assert_same_network(gpu, cpu, np.float64)


def test_large_systems_of_a_fit_are_solved_on_the_gpu(monkeypatch):
    monkeypatch.setattr(solvers, "LARGE_SYSTEM", 1)
    X, labels = rings(np.float64)

    def make():
        return bf.Network([3, 6, 2], activation="softmax", seed=2)

    (gpu, _), (cpu, _) = both(bf.fit_classifier, make, X, labels, max_iter=1, margin=0.02)
    assert_same_network(gpu, cpu, np.float64)
    with pytest.warns(RuntimeWarning, match="eps = 0 was too small"):
        bf.fit_classifier(
            make(), np.ones((6, 3)), [0, 1] * 3, eps=0, max_iter=1, margin=0.02, backend="cuda"
        )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", ["fit_injective", "fit_classifier", "fit_refined"])
def test_rows_are_moved_once_and_stay_on_the_device(method, weighted, monkeypatch):
    moved, back = [], []
    upload, download = runtime.upload, runtime.download
    monkeypatch.setattr(runtime, "upload", lambda a: moved.append(a.shape) or upload(a))
    monkeypatch.setattr(runtime, "download", lambda a: back.append(a) or download(a))
    X, labels = rings(np.float64, 64)
    data = (X, X[:, :2]) if method == "fit_injective" else (X, labels)
    output = "identity" if method == "fit_injective" else "softmax"
    net = bf.Network([3, 4, 2], activation="tanh", output_activation=output, seed=1)
    options = {
        "fit_classifier": {"max_iter": 4, "full_sweeps": 3},
        "fit_refined": {"max_sweeps": 3},
    }
    weight = np.linspace(0.5, 1.5, len(X)) if weighted else None
    if method == "fit_refined":
        options[method]["chunk_rows"] = len(X)
    getattr(bf, method)(net, *data, sample_weight=weight, backend="cuda", **options.get(method, {}))
    assert moved.count(X.shape) == 1
    assert moved.count((len(X), 2)) <= 1  # the targets
    assert not [a for a in back if len(a.shape) == 2 and len(a) == len(X) and a.shape[1] > 2]
    outputs = [a for a in back if a.shape == (len(X), 2)]
    assert len(outputs) <= 2  # at the end of refined sweeps, for the temperature of their softmax


def test_the_same_fit_gives_the_same_bits():
    X, labels = rings(np.float32)
    nets = [bf.Network([3, 4, 2], activation="relu", seed=2) for _ in range(2)]
    for net in nets:
        bf.fit_refined(net, X, labels, max_sweeps=2, backend="cuda")
    assert all(map(same_bits, nets[0].weights, nets[1].weights))


def test_a_fit_runs_where_its_rows_are():
    X, labels = rings(np.float32)
    for given, backend in ((asarray(X), "cuda"), (X, "cpu")):
        net = bf.Network([3, 4, 2], activation="relu", seed=2)
        report = bf.fit_refined(net, given, labels, max_sweeps=1)
        assert report.backend == backend
        assert isinstance(net.weights[0], np.ndarray)
    assert bf.fit_refined(net, asarray(X), labels, max_sweeps=1, backend="cpu").backend == "cpu"


def test_a_failed_fit_leaves_the_network_alone():
    net = bf.Network([3, 4, 2], seed=2)
    before = [W.copy() for W in net.weights]
    X, labels = rings(np.float64)
    X[5, 1] = np.nan
    with pytest.raises(ValueError, match=r"X contains NaN at \[5, 1\]"):
        bf.fit_classifier(net, asarray(X), labels)
    assert all(map(same_bits, net.weights, before))


def test_a_network_runs_where_it_is_sent():
    X = rings(np.float32)[0]
    net = bf.Network([3, 4, 2], activation="tanh", seed=3)
    expected = net.forward(X)
    assert net.to("cuda") is net
    found = net.forward(X)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert isinstance(net.forward(asarray(X)), Array)
    assert isinstance(net.to("cpu").decision(asarray(X)), Array)
    net.classes = np.array(["a", "b"])
    assert (net.predict(asarray(X)) == net.predict(X)).all()
    with pytest.raises(ValueError, match="backend is 'tpu'"):
        net.to("tpu")


def test_estimators_take_the_backend():
    pytest.importorskip("sklearn")
    X, labels = rings(np.float64)
    options = {"hidden_layer_sizes": (4,), "random_state": 0}
    for method in ("refined", "paper"):
        gpu, cpu = (
            bf.BPLSClassifier(method=method, backend=backend, **options).fit(X, labels)
            for backend in ("cuda", "cpu")
        )
        assert (gpu.predict(X) == cpu.predict(X)).mean() > 0.9
    model = bf.BPLSRegressor(backend="cuda", **options).fit(X, X[:, 0])
    assert model.score(X, X[:, 0]) > 0.5


@pytest.fixture
def small_memory(monkeypatch):
    """Leave the device no room for a matrix of five columns and more than 300 bytes."""
    upload = runtime.upload

    def limited(values):
        if values.ndim == 2 and values.shape[1] == 5 and values.nbytes > 300:
            raise runtime.OutOfMemoryError("CUDA_ERROR_OUT_OF_MEMORY")
        return upload(values)

    monkeypatch.setattr(runtime, "upload", limited)
    monkeypatch.setattr(array, "BLOCK_BYTES", 1000)


def wide_rings():
    X, labels = rings(np.float64)
    return np.hstack([X, X[:, :2] ** 2]), labels


def test_rows_that_do_not_fit_the_device_go_there_part_by_part(small_memory):
    X, _ = wide_rings()
    assert isinstance(array.rows_to_device(X), HostRows)
    B, W = np.ones((len(X), 2)), np.ones((6, 2))
    for found, expected in (
        (bf.gram(X, B, bias=True, backend="cuda")[1], bf.gram(X, B, bias=True)[1]),
        (bf.cross(X, B, backend="cuda"), bf.cross(X, B)),
        (bf.linear(X, W, bias=True, backend="cuda"), bf.linear(X, W, bias=True)),
    ):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)
    X[40, 2] = np.inf
    with pytest.raises(ValueError, match=r"A contains infinity at \[40, 2\]"):
        bf.linear(X, W, bias=True, backend="cuda")


@pytest.mark.parametrize("method", ["fit_injective", "fit_classifier", "fit_refined"])
def test_fits_run_on_rows_that_do_not_fit_the_device(small_memory, method):
    X, labels = wide_rings()
    options = {
        "fit_classifier": {"max_iter": 2, "margin": 0.02},
        "fit_refined": {"max_sweeps": 2, "chunk_rows": 10},
    }
    data = (X, X[:, :2]) if method == "fit_injective" else (X, labels)
    output = "identity" if method == "fit_injective" else "softmax"

    def make():
        return bf.Network([5, 4, 2], activation="tanh", output_activation=output, seed=1)

    (gpu, _), (cpu, _) = both(getattr(bf, method), make, *data, eps=1e-3, **options.get(method, {}))
    assert_same_network(gpu, cpu, np.float64)


@pytest.fixture
def no_room(monkeypatch):
    """Leave the device no room for results of more than 200 bytes."""
    empty = runtime.empty

    def limited(shape, dtype):
        if np.prod(shape) * np.dtype(dtype).itemsize > 200:
            raise runtime.OutOfMemoryError("CUDA_ERROR_OUT_OF_MEMORY")
        return empty(shape, dtype)

    monkeypatch.setattr(runtime, "empty", limited)


def test_results_that_do_not_fit_the_device_are_made_part_by_part(no_room):
    X, _ = rings(np.float64)
    W = np.ones((3, 2))
    np.testing.assert_allclose(bf.linear(X, W, backend="cuda"), X @ W, rtol=1e-12)
    net = bf.Network([3, 4, 2], activation="tanh", seed=3)
    expected = net.forward(X)
    np.testing.assert_allclose(net.to("cuda").forward(X), expected, rtol=1e-12)
    with pytest.raises(MemoryError):  # one row that is too long
        bf.linear(X, np.ones((3, 26)), backend="cuda")
    with pytest.raises(MemoryError):  # the result belongs on the device
        bf.linear(asarray(X), W)


def test_sums_that_do_not_fit_the_device_are_made_of_fewer_rows_at_a_time(no_room, monkeypatch):
    monkeypatch.setattr(products, "BLOCK_ROWS", dict.fromkeys(products.BLOCK_ROWS, 8))
    X, _ = rings(np.float64)
    np.testing.assert_allclose(bf.gram(X, backend="cuda"), bf.gram(X), rtol=1e-12)
    with pytest.raises(MemoryError):
        bf.gram(np.hstack([X, X]), backend="cuda")


def test_a_device_without_room_for_one_row_says_so(monkeypatch):
    def full(values):
        raise runtime.OutOfMemoryError("CUDA_ERROR_OUT_OF_MEMORY")

    rows = HostRows(np.ones((4, 2)))
    monkeypatch.setattr(runtime, "upload", full)
    with pytest.raises(MemoryError, match="OUT_OF_MEMORY"):
        list(array.device_blocks(rows))
