"""The activations by name: forward, inverse and derivatives on the compiled core.

They take float32 and float64 arrays of any shape and strides and return arrays of the same shape and dtype, on the
GPU if their arguments are there. NaN propagates, nothing is searched for it; at an infinity the result is the limit.
`out` is the array to write to: C-contiguous, with the shape and dtype of the argument; it may be the argument itself,
but no other array that overlaps it.

Accuracy at every instruction-set level, in units in the last place (ULP); `forward` is tested with every float32,
the others, and float64, on dense samples:

- `forward` and `derivative` are within 3 ULP of the exact value, subnormal results included;
- `inverse` is within 4 ULP of the larger of |z| and |n|: where z passes through zero and n does not, the last place
  of n decides;
- softmax: the rounding of z - max(z) counts as an error of z. The relative error of an element of `forward` is at most
  max(z) - min(z) + 6 machine epsilons; the error of an element of `inverse` is at most 6 machine epsilons of the
  largest |log(n)| of its row. Sums run in double, except for the first two additions.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from bpls_fast import _core
from bpls_fast._core import on_host
from bpls_fast.kernels.backend import device_kernels

__all__ = ["Activation", "activations"]

Interval = tuple[float, float]


class Activation(NamedTuple):
    """An activation function: its name, its domain and range, and the functions between them.

    Attributes
    ----------
    name : str
        Its name in `linear` and in networks.
    domain : (float, float)
        The z for which `inverse(forward(z))` is z (softmax: z less the mean of its row).
    range : (float, float)
        The values that `forward` takes, or comes arbitrarily close to.
    injective : bool
        Whether `forward` is one-to-one over all z. ReLU and softmax are not.

    Examples
    --------
    >>> import numpy as np
    >>> import bpls_fast as bf
    >>> sigmoid = bf.activations["sigmoid"]
    >>> sigmoid.range
    (0.0, 1.0)
    >>> sigmoid.inverse(sigmoid.forward(np.array([-1.0, 0.0, 2.0]))).round(6)
    array([-1.,  0.,  2.])
    """

    name: str
    domain: Interval
    range: Interval
    injective: bool

    def forward(
        self, z: ArrayLike, *, out: NDArray[Any] | None = None, n_threads: int | None = None
    ) -> NDArray[Any]:
        """Return act(z). Softmax runs along the last axis; a row with +inf, or with -inf only, becomes NaN."""
        if not on_host("auto", z, out) and (gpu := device_kernels("auto", z, out)):
            return gpu.activations[self.name].forward(z, out=out)
        return _core.forward(self.name, z, out, n_threads)

    def inverse(
        self,
        n: ArrayLike,
        *,
        margin: float | None = None,
        out: NDArray[Any] | None = None,
        n_threads: int | None = None,
    ) -> NDArray[Any]:
        """Return the z with act(z) = n, after clipping n into the range.

        Values are kept at least `margin` away from every finite end of the range that `forward` does not reach:
        sigmoid is clipped to [margin, 1 - margin], tanh to ±(1 - margin), elu from -1 + margin on, softplus from
        margin on, softminus up to -margin, softmax from margin on (only from below: a common factor of a row is a
        constant of its logs, so its values may have any size). ReLU reaches its end 0: it is clipped there, and the
        result is the z of least magnitude. For softmax the result is the z whose row has mean zero. At an infinite
        end infinities pass through.

        Parameters
        ----------
        n : array of float32 or float64
        margin : float, optional
            Above 0 and below 0.5; by default the machine epsilon of the dtype. Next to ±1 it is at least the spacing of
            the floats there.
        out : array, optional
            The array to write to, of the shape and dtype of n; it may be n itself.
        n_threads : int, optional
            Threads of this call.
        """
        if not on_host("auto", n, out) and (gpu := device_kernels("auto", n, out)):
            return gpu.activations[self.name].inverse(n, margin=margin, out=out)
        return _core.inverse(self.name, n, margin, out, n_threads)

    def derivative(
        self, z: ArrayLike, *, out: NDArray[Any] | None = None, n_threads: int | None = None
    ) -> NDArray[Any]:
        """Return d act(z)_i / d z_i at z; for softmax the diagonal of the Jacobian, n(1 - n).

        At the kink the derivative is that from below: 0 for ReLU, 0.01 for leaky ReLU.
        """
        if not on_host("auto", z, out) and (gpu := device_kernels("auto", z, out)):
            return gpu.activations[self.name].derivative(z, out=out)
        return _core.derivative(self.name, z, out, n_threads)

    def jacobian(
        self,
        v: ArrayLike,
        n: ArrayLike,
        *,
        out: NDArray[Any] | None = None,
        n_threads: int | None = None,
    ) -> NDArray[Any]:
        """Return J v for the Jacobian J at the z with act(z) = n; the argument is n, not z.

        J is symmetric: diagonal, except for softmax, where it is diag(n) - n nᵀ along the last axis.

        Parameters
        ----------
        v, n : arrays of float32 or float64
            With the same shape and dtype.
        out : array, optional
            The array to write to, of that shape and dtype; it may be v or n itself.
        n_threads : int, optional
            Threads of this call.
        """
        if not on_host("auto", v, n, out) and (gpu := device_kernels("auto", v, n, out)):
            return gpu.activations[self.name].jacobian(v, n, out=out)
        return _core.jacobian(self.name, v, n, out, n_threads)

    def squared_slopes(
        self,
        n: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        n_threads: int | None = None,
    ) -> NDArray[float64]:
        """Return, for each column, the sum over rows of the squared diagonal of `jacobian` at the values n.

        Parameters
        ----------
        n : (d, m) array of float32 or float64
        sample_weight : (d,) array of float32 or float64, optional
            Weights of the rows in these sums.
        n_threads : int, optional
            Threads of this call.
        """
        if not on_host("auto", n) and (gpu := device_kernels("auto", n)):
            return gpu.activations[self.name].squared_slopes(n, sample_weight=sample_weight)
        if sample_weight is None:
            return _core.squared_slopes(self.name, n, n_threads)
        n = np.asarray(n)
        ones = np.ones_like(n)
        is_softmax = self.name == "softmax"
        slope = n * (ones - n) if is_softmax else self.jacobian(ones, n, n_threads=n_threads)
        weights = np.asarray(sample_weight)
        sums: NDArray[float64] = np.einsum("i,ij,ij->j", weights, slope, slope, dtype=float64)
        return sums


activations = MappingProxyType(
    {activation[0]: Activation(*activation) for activation in _core.activations()}
)
"""The activations by name, in a mapping that cannot be changed."""
