"""Data sets to try the package on."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["DataSet", "load"]


class DataSet(NamedTuple):
    """Images as rows of uint8 and their labels, split into a training and a test part."""

    x_train: NDArray[np.uint8]
    y_train: NDArray[np.int64]
    x_test: NDArray[np.uint8]
    y_test: NDArray[np.int64]


def load(name: str) -> DataSet:
    """Load a data set by name.

    Parameters
    ----------
    name : {"digits"}
        scikit-learn's 1797 digits of 8 x 8 pixels, valued 0 to 16. A fifth of them, drawn at random but
        always the same, is the test part.

    Raises
    ------
    ImportError
        scikit-learn, which holds the digits, is not installed.

    Examples
    --------
    >>> import bpls_fast as bf
    >>> bf.datasets.load("digits").x_train.shape
    (1437, 64)
    """
    if name != "digits":
        raise ValueError(f"name is {name!r}; expected 'digits'")
    try:
        import sklearn.datasets
    except ImportError as error:
        raise ImportError(
            "the digits need scikit-learn: pip install 'bpls_fast[sklearn]'"
        ) from error
    bunch: Any = sklearn.datasets.load_digits()
    order = np.random.default_rng(0).permutation(len(bunch.data))
    x = bunch.data.astype(np.uint8)[order]
    y = bunch.target.astype(np.int64)[order]
    train = len(x) * 4 // 5
    return DataSet(x[:train], y[:train], x[train:], y[train:])
