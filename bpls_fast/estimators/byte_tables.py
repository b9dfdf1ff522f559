"""Whether rows of bytes are images, whose columns share one unit, or a table, whose columns do not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["is_table"]

LOOKED_AT = 2_000
"""The most rows that the decision is made from."""

SMALL_RANGE = 8
"""A range is small if it is this many times smaller than the largest one."""

LEAST_SHARE, FEWEST = 0.05, 5
"""The share and the number of rows that must differ from the least value of a column, and from its largest: pixels at
the border of images may have a small range because they are nearly constant."""

FEW_COLUMNS = 0.05
"""The share of columns with a small range from which on bytes are a table."""


def is_table(X: NDArray[np.uint8]) -> bool:
    """Return whether some columns that vary have a far smaller range than others.

    Examples
    --------
    >>> import numpy as np
    >>> from bpls_fast.estimators.byte_tables import is_table
    >>> pixels = np.random.default_rng(0).integers(0, 256, (100, 4), np.uint8)
    >>> is_table(pixels), is_table(np.c_[pixels, pixels[:, :1] % 2])
    (False, True)
    """
    rows = X[:: -(-len(X) // LOOKED_AT)]
    low, high = rows.min(axis=0), rows.max(axis=0)
    least = max(FEWEST, LEAST_SHARE * len(rows))
    above, below = (np.count_nonzero(rows != end, axis=0) for end in (low, high))
    ranges = (high - low)[np.minimum(above, below) >= least].astype(int)
    small = int(np.count_nonzero(SMALL_RANGE * ranges < ranges.max(initial=0)))
    return small > 0 and small >= FEW_COLUMNS * len(ranges)
