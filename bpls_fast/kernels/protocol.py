"""Every kernel's name and signature, once: `bpls_fast.kernels` and `bpls_fast.cuda.kernels` both have them.

In `cuda/conformance.py` mypy checks both modules against `Kernels`. Arrays of the GPU are typed as NumPy's arrays: they
have the part of NumPy's interface that the fits use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, overload

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

__all__ = ["ActivationKernels", "Kernels"]


class ActivationKernels(Protocol):
    """The functions of one activation; `bpls_fast.kernels.activations.Activation` documents them."""

    def forward(self, z: ArrayLike, *, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return act(z)."""

    def inverse(
        self, n: ArrayLike, *, margin: float | None = None, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return the z with act(z) = n."""

    def derivative(self, z: ArrayLike, *, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the derivative at z, of softmax the diagonal of the Jacobian."""

    def jacobian(
        self, v: ArrayLike, n: ArrayLike, *, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return J v for the Jacobian J at the values n."""

    def squared_slopes(
        self, n: ArrayLike, *, sample_weight: ArrayLike | None = None
    ) -> NDArray[float64]:
        """Return the sums over rows of the squared slopes at the values n, in host memory."""


class Kernels(Protocol):
    """What a backend computes. The functions of `bpls_fast.kernels` document the arguments."""

    @property
    def activations(self) -> Mapping[str, ActivationKernels]:
        """The activations by name."""

    @overload
    def gram(
        self,
        A: ArrayLike,
        B: None = None,
        *,
        bias: bool = False,
        scale: ArrayLike | None = None,
        center: bool = False,
        sample_weight: ArrayLike | None = None,
        out: NDArray[float64] | None = None,
        check_finite: bool = True,
    ) -> NDArray[float64]: ...
    @overload
    def gram(
        self,
        A: ArrayLike,
        B: ArrayLike,
        *,
        bias: bool = False,
        scale: ArrayLike | None = None,
        center: bool = False,
        sample_weight: ArrayLike | None = None,
        out: tuple[NDArray[float64], NDArray[float64]] | None = None,
        check_finite: bool = True,
    ) -> tuple[NDArray[float64], NDArray[float64]]: ...

    def cross(
        self,
        A: ArrayLike,
        D: ArrayLike,
        *,
        bias: bool = False,
        scale: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        out: NDArray[float64] | None = None,
        check_finite: bool = True,
    ) -> NDArray[float64]:
        """Return AᵀWD."""

    def solve(
        self,
        G: ArrayLike,
        C: ArrayLike,
        *,
        eps: float = 1e-6,
        relative: bool = True,
        out: NDArray[float64] | None = None,
        check_finite: bool = True,
    ) -> NDArray[float64]:
        """Solve (G + eps·I) W = C."""

    def solve_batched(
        self,
        G: ArrayLike,
        C: ArrayLike,
        *,
        eps: float = 1e-6,
        relative: bool = True,
        out: NDArray[float64] | None = None,
        check_finite: bool = True,
    ) -> NDArray[float64]:
        """Solve many systems of one size."""

    def solve_layer(
        self,
        A: ArrayLike,
        B: ArrayLike,
        *,
        bias: bool = False,
        eps: float = 1e-6,
        relative: bool = True,
        sample_weight: ArrayLike | None = None,
        out: NDArray[float64] | None = None,
        check_finite: bool = True,
    ) -> NDArray[float64]:
        """Return the least-squares solution of A W = B."""

    def linear(
        self,
        A: ArrayLike,
        W: ArrayLike,
        *,
        bias: bool = False,
        activation: str = "identity",
        out: NDArray[Any] | None = None,
        check_finite: bool = True,
    ) -> NDArray[Any]:
        """Return act(A W + b)."""

    def tangent(
        self,
        A: ArrayLike,
        W: ArrayLike,
        N: NDArray[Any],
        *,
        bias: bool = False,
        activation: str = "identity",
        out: NDArray[Any] | None = None,
        check_finite: bool = True,
    ) -> NDArray[Any]:
        """Return J (A W + b)."""

    def residual(
        self,
        A: ArrayLike,
        W: ArrayLike,
        B: NDArray[Any],
        *,
        bias: bool = False,
        out: NDArray[Any] | None = None,
        check_finite: bool = True,
    ) -> NDArray[Any]:
        """Return B - (A W + b)."""

    def target(
        self,
        R: NDArray[Any],
        M: NDArray[Any],
        N: NDArray[Any],
        *,
        activation: str,
        margin: float,
        out: NDArray[Any] | None = None,
        check_finite: bool = True,
    ) -> NDArray[Any]:
        """Return the inverse of the activation at N + R M."""

    def column_sums(
        self,
        P: NDArray[Any],
        Q: NDArray[Any] | None = None,
        sample_weight: NDArray[Any] | None = None,
    ) -> NDArray[float64]:
        """Return the sum of every column, in host memory."""

    def missed(self, outputs: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.intp]:
        """Return the numbers of the misclassified rows, in host memory."""

    def take_rows(self, X: Any, rows: NDArray[np.intp], out: Any) -> Any:
        """Copy chosen rows into `out`."""

    def clip_rows(self, X: Any, limits: NDArray[Any]) -> Any:
        """Return X with every value moved into the limits of its column."""

    def check_finite(self, values: Any, name: str) -> None:
        """Raise where an array holds NaN or infinity."""
