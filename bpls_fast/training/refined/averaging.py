"""The running mean of hidden weights over sweeps, which a fit over chunks returns in place of the last weights."""

from __future__ import annotations

from bpls_fast.training.data import Weights

__all__ = ["LEAST_KEPT", "averaged", "kept_share"]

LEAST_KEPT, WINDOW = 0.8, 0.25
"""The least share of the mean that a sweep keeps, and the share of all sweeps that the mean reaches back over."""


def kept_share(sweeps: int) -> float:
    """Return the share of the mean that the latest of so many sweeps over chunks keeps."""
    return max(LEAST_KEPT, 1 - 1 / (WINDOW * sweeps))


def averaged(mean: Weights, latest: Weights, kept: float) -> Weights:
    """Return a mean of weights that keeps a share of the one before."""
    if not kept:
        return latest
    pairs = zip(mean, latest, strict=True)
    return [kept * earlier + (1 - kept) * later for earlier, later in pairs]
