"""Dispatch: BPLS_ISA picks every level of this CPU, and any other value is a clear ImportError.

Every level agrees with the others, and passes the tests of the kernels in processes of its own: a few of them in every
run, all of them in the thorough tier.
"""

import json
import os
import platform
from pathlib import Path

import numpy as np
import pytest

import bpls_fast as bf
from tests import ROOT
from tests.support.reference import U64, float32_block_bound, float64_bound, gamma
from tests.support.subprocesses import import_error, output_of, run_code, run_python

pytestmark = pytest.mark.skipif(
    "BPLS_ISA_SUBPROCESS" in os.environ, reason="started by this file itself for one level"
)

ISA = bf.config()["isa"]
TESTS = ROOT / "tests"
KERNEL_TESTS = [
    "kernels/test_gram.py",
    "kernels/test_solve.py",
    "kernels/test_linear.py",
    "kernels/test_linear_bytes.py",
    "kernels/test_tangent.py",
    "kernels/test_activations.py",
    "kernels/test_activation_inverses.py",
    "kernels/test_activation_arrays.py",
    "kernels/test_softmax.py",
    "network/test_predictor.py",
]
A_FEW_OF_THEM = [
    "kernels/test_gram.py::test_gram_with_b_is_within_the_bound_of_the_reference",
    "kernels/test_gram.py::test_large_shapes_are_within_the_bound_of_the_reference",
    "kernels/test_solve.py::test_solve_takes_every_dtype_layout_and_eps",
    "kernels/test_linear.py::test_linear_is_within_the_bound_of_the_reference",
    "kernels/test_linear_bytes.py::test_products_are_those_of_integers_to_the_bit",
    "kernels/test_tangent.py::test_tangent_is_within_the_bound_of_the_reference",
    "kernels/test_activations.py::test_forward_is_within_its_ulps_of_the_formula",
    "kernels/test_activations.py::test_derivative_is_within_its_ulps_of_the_formula",
    "kernels/test_activations.py::test_inverse_is_within_its_ulps_of_the_formula",
    "kernels/test_softmax.py::test_softmax_is_the_formula_along_the_last_axis",
    "network/test_predictor.py::test_labels_are_those_of_predict",
]

each_supported = pytest.mark.parametrize("level", ISA["supported"])


def fallbacks(level: str) -> list[str]:
    """Return the levels that a level falls back to, the nearest first."""
    below = ISA["fallback"][level]
    return [] if below == level else [below, *fallbacks(below)]


def test_compiled_supported_and_active_levels_nest() -> None:
    assert set(ISA["supported"]) <= set(ISA["compiled"])
    assert "generic" in ISA["supported"]
    assert ISA["active"] in ISA["supported"]


def test_every_compiled_level_has_its_flags_listed() -> None:
    assert set(bf.config()["flags"]) == set(ISA["compiled"])


@pytest.mark.skipif(
    platform.machine().lower() not in {"x86_64", "amd64"}, reason="the AVX levels are x86-64 only"
)
def test_there_are_levels_beyond_the_generic_one_on_x86_64() -> None:
    assert len(ISA["compiled"]) > 1


@pytest.mark.parametrize("level", ISA["compiled"])
def test_a_level_falls_back_to_compiled_ones_and_at_last_to_the_generic_one(level: str) -> None:
    assert [level, *fallbacks(level)][-1] == "generic"
    assert set(fallbacks(level)) <= set(ISA["compiled"])


@each_supported
def test_what_a_supported_level_falls_back_to_is_supported(level: str) -> None:
    assert set(fallbacks(level)) <= set(ISA["supported"])


def test_the_supported_level_with_the_most_fallbacks_is_picked_by_default() -> None:
    code = "import bpls_fast; print(bpls_fast.config()['isa']['active'])"
    active = output_of(run_code(code, BPLS_ISA=None)).strip()
    assert len(fallbacks(active)) == max(len(fallbacks(level)) for level in ISA["supported"])


@each_supported
def test_a_supported_level_becomes_active_when_asked_for(level: str) -> None:
    code = "import bpls_fast, json; print(json.dumps(bpls_fast.config()['isa']))"
    isa = json.loads(output_of(run_code(code, BPLS_ISA=level)))
    assert isa == {**ISA, "active": level}


def assert_refused(value: str) -> None:
    message = import_error(BPLS_ISA=value)
    assert "BPLS_ISA" in message
    assert value in message
    for level in ISA["supported"]:
        assert level in message


@pytest.mark.parametrize("value", ["sse9", "avx", "avx2 avx512", "0"])
def test_an_unknown_level_is_an_import_error_naming_the_possible_ones(value: str) -> None:
    assert_refused(value)


@pytest.mark.skipif(ISA["supported"] == ISA["compiled"], reason="this CPU has every level")
def test_a_level_this_cpu_lacks_is_an_import_error_naming_the_possible_ones() -> None:
    for level in set(ISA["compiled"]) - set(ISA["supported"]):
        assert_refused(level)


RESULTS = """
    import sys
    import numpy as np
    import bpls_fast as bf

    inputs = np.load(sys.argv[1])
    results = {name: bf.gram(inputs[name], bias=True) for name in inputs.files}
    results["linear"] = bf.linear(inputs["float32"], inputs["float64"][:37], activation="tanh")
    np.savez(sys.argv[2], **results)
"""


def test_all_levels_agree_within_the_kernels_bounds(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = 1003
    inputs = {
        "uint8": rng.integers(0, 256, (rows, 37), dtype=np.uint8),
        "float32": rng.normal(size=(rows, 37)).astype(np.float32),
        "float64": rng.normal(size=(rows, 37)),
    }
    np.savez(tmp_path / "inputs.npz", **inputs)

    def results_of(level: str) -> dict[str, np.ndarray]:
        path = tmp_path / f"{level}.npz"
        output_of(run_code(RESULTS, str(tmp_path / "inputs.npz"), str(path), BPLS_ISA=level))
        return dict(np.load(path))

    # Two levels differ by at most twice the bound of each: blocks of 256 rows in float32, summed
    # in float64, and plain float64.
    bounds = {"float32": 2 * float32_block_bound(rows), "float64": 2 * float64_bound(rows)}

    def magnitude(name: str) -> np.ndarray:
        A = np.abs(np.column_stack([inputs[name].astype(float), np.ones(rows)]))
        return A.T @ A

    generic = results_of("generic")
    for level in ISA["supported"]:
        found = results_of(level)
        np.testing.assert_array_equal(found["uint8"], generic["uint8"])
        for name, bound in bounds.items():
            assert np.all(np.abs(found[name] - generic[name]) <= bound * magnitude(name)), level
        # tanh has slope 1 at most, and is itself good to 8 ULP at every level.
        sums = np.abs(inputs["float32"].astype(float)) @ np.abs(inputs["float64"][:37])
        allowed = 2 * gamma(37 + 2, U64) * sums + 16 * 2**-52
        assert np.all(np.abs(found["linear"] - generic["linear"]) <= allowed), level


def assert_passes(level: str, tests: list[str], profile: str) -> None:
    """Run some tests at a level, those of the thorough tier included."""
    if level == ISA["active"]:
        pytest.skip(f"{level} is active in this run already")
    finished = run_python(
        *("-m", "pytest", "-q", "-x", "-m", "", "-p", "no:cacheprovider"),
        *(str(TESTS / name) for name in tests),
        timeout=1800,
        BPLS_ISA=level,
        BPLS_ISA_SUBPROCESS="1",
        BPLS_HYPOTHESIS_PROFILE=profile,
        PYTEST_ADDOPTS="",  # its options are for the run that it is given to
    )
    assert " passed" in output_of(finished)


@each_supported
def test_a_level_passes_a_few_tests_of_every_kernel(level: str) -> None:
    assert_passes(level, A_FEW_OF_THEM, "few")


@pytest.mark.thorough
@each_supported
@pytest.mark.parametrize("file", KERNEL_TESTS)
def test_a_level_passes_the_kernel_tests(file: str, level: str) -> None:
    assert_passes(level, [file], "plain")
