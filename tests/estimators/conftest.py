"""Data sets that scikit-learn brings along."""

import pytest

import bpls_fast as bf


@pytest.fixture(scope="session")
def digits():
    return bf.datasets.load("digits")


@pytest.fixture(scope="session")
def wine():
    return pytest.importorskip("sklearn.datasets").load_wine(return_X_y=True)
