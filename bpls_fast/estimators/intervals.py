"""How uncertain the outputs of a committee are, by its members and their errors for rows that they did not see."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bpls_fast.network import Network
from bpls_fast.training.data import Array
from bpls_fast.training.initial_network import fold_offset
from bpls_fast.training.moments import OutputScale
from bpls_fast.training.refined.committee import Committee

__all__ = ["Uncertainty"]

HALVINGS = 60
"""Halvings of the range that holds the end of an interval: enough for every bit of float64."""


class Uncertainty(NamedTuple):
    """The members of a committee of numbers, and the magnitudes of their out-of-fold errors.

    Attributes
    ----------
    members : tuple of Network
        Their outputs are standardized.
    scale : OutputScale
        The units of y.
    errors : tuple of (rows, outputs) arrays
        For each member, every column sorted, in the units of y.
    """

    members: tuple[Network, ...]
    scale: OutputScale
    errors: tuple[NDArray[np.float64], ...]

    @classmethod
    def of(
        cls, committee: Committee, offset: NDArray[np.float64], scale: OutputScale
    ) -> Uncertainty:
        """Return the uncertainty in the units of y.

        Parameters
        ----------
        committee : Committee
            Of standardized outputs.
        offset : array
            What was subtracted from the columns of X.
        scale : OutputScale
            The units of y.
        """
        for member in committee.members:
            fold_offset(member, offset)
        errors = (scale.deviation * np.sort(errors, axis=0) for errors in committee.errors)
        return cls(committee.members, scale, tuple(errors))

    def outputs(self, X: Array) -> NDArray[np.float64]:
        """Return the outputs of every member in the units of y: (members, rows, outputs)."""
        return np.array([self.scale.restore(member.forward(X)) for member in self.members])

    def deviations(self, X: Array) -> NDArray[np.float64]:
        """Return the standard deviations of y: of the outputs of the members and of the errors together."""
        every = np.concatenate(self.errors)
        noise = np.square(every).sum(axis=0) / len(every)
        deviations: NDArray[np.float64] = np.sqrt(self.outputs(X).var(axis=0) + noise)
        return deviations

    def interval(
        self, X: Array, coverage: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the ends of the CV+ intervals.

        Of all numbers m + e, where m is the output of a member and e one of its errors, the upper end is the one whose
        rank is the share `coverage` of all; the lower end likewise for m - e.
        """
        outputs = self.outputs(X)
        return -self._upper(-outputs, coverage), self._upper(outputs, coverage)

    def _upper(self, outputs: NDArray[np.float64], coverage: float) -> NDArray[np.float64]:
        count = sum(map(len, self.errors))
        rank = min(int(np.ceil(coverage * (count + 1))), count)
        low: NDArray[np.float64] = outputs.min(axis=0)
        high: NDArray[np.float64] = outputs.max(axis=0) + np.max(
            [errors[-1] for errors in self.errors], axis=0
        )
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            reached = self._ranks(outputs, middle) >= rank
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return high

    def _ranks(self, outputs: NDArray[np.float64], bound: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return how many of the numbers m + e are at most the bound, for every row and output."""
        ranks = np.zeros(bound.shape, np.int64)
        for output, errors in zip(outputs, self.errors, strict=True):
            for column in range(bound.shape[1]):
                reach = bound[:, column] - output[:, column]
                ranks[:, column] += np.searchsorted(errors[:, column], reach, side="right")
        return ranks
