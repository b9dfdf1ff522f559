"""What a sweep costs, counted before it runs: the multiply-adds of every phase."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpls_fast.network import Network

__all__ = ["Cost", "sweep_cost"]


class Cost(NamedTuple):
    """Multiply-adds of one backward sweep, by phase.

    Attributes
    ----------
    forward : int
        The values that enter every layer.
    gram : int
        AᵀA, its upper triangle alone, and AᵀB.
    solve : int
        Cholesky factors, forward and back substitution.
    target : int
        Residuals, and pulling them back through the layer above.
    """

    forward: int
    gram: int
    solve: int
    target: int

    @property
    def total(self) -> int:
        """Their sum."""
        return sum(self)


def sweep_cost(net: Network, d: int, *, resolve: bool = False, refinements: int = 0) -> Cost:
    """Count the multiply-adds of one backward sweep over d rows; they do not depend on the values.

    The target is the joint one, and every pivot is above zero at the first try. The sweeps of `fit_classifier` over
    all rows share one Gram matrix of X: after the first, they save what that takes.

    Parameters
    ----------
    net : Network
    d : int
        Rows.
    resolve : bool
        Whether layers above the first are solved a second time, on the updated matrix.
    refinements : int
        Solves of every layer besides the first, each after a residual: 2 in `fit_injective`, none in
        `fit_classifier`.

    Examples
    --------
    >>> import bpls_fast as bf
    >>> from bpls_fast.training.cost import sweep_cost
    >>> sweep_cost(bf.Network([784, 60, 10]), 60_000)
    Cost(forward=2826000000, gram=21486360000, solve=117623460, target=72608865)
    """
    for name, value in (("d", d), ("refinements", refinements)):
        if not isinstance(value, (int, np.integer)) or value < 0:
            raise ValueError(f"{name} is {value!r}; expected a whole number >= 0")
    d, refinements = int(d), int(refinements)
    forward = gram = solve = target = 0
    for layer, (n, m) in enumerate(net.weight_shapes):
        times = 2 if resolve and layer else 1
        if layer < len(net.weight_shapes) - 1:
            forward += d * n * m
        gram += times * d * (n * (n + 1) // 2 + n * m)
        solve += times * ((1 + refinements) * _solve_cost(n, m) + refinements * n * n * m)
        if layer:
            below = n - net.bias
            # The pseudo-inverse solves with the Gram of the shorter side.
            short, long = min(below, m), max(below, m)
            target += long * short * (short + 1) // 2 + _solve_cost(short, long)
            target += d * n * m + d * m * below
    return Cost(forward, gram, solve, target)


def _solve_cost(n: int, m: int) -> int:
    """Multiply-adds of an n by n Cholesky factor, and of both substitutions for m right-hand sides."""
    return (n - 1) * n * (n + 1) // 6 + n * (n - 1) * m
