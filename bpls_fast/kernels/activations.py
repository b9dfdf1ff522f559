"""The activations by name: forward, inverse and derivatives on the compiled core.

They take float32 and float64 arrays of any shape and strides and give new arrays of the same shape and
dtype, on the GPU if that is where they are. NaN gives NaN; an infinity gives the limit.

Accuracy, at every instruction-set level, for float32 (forward: tested with every float32 there is) and for
float64 (tested on dense samples), in units of the last place (ULP):

- `forward` and `derivative` are within 3 ULP of the exact value, subnormal results included;
- `inverse` is within 4 ULP of the larger of |z| and |n|: where z passes through zero and n does not, the
  last place of n decides;
- softmax: the rounding of z - max(z) counts like an error of z. An element of `forward` is off by at most
  max(z) - min(z) + 6 machine epsilons of itself, an element of `inverse` by at most 6 machine epsilons of
  the largest |log(n)| of its row. Sums run in double, but for the first two additions.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, NamedTuple

from numpy import float64
from numpy.typing import ArrayLike, NDArray

from bpls_fast import _core
from bpls_fast.kernels.backend import device_kernels

__all__ = ["Activation", "activations"]

Interval = tuple[float, float]


class Activation(NamedTuple):
    """An activation function: a name, its two intervals, and the functions between them.

    Attributes
    ----------
    name : str
        What `linear` and the networks call it.
    domain : (float, float)
        The z on which `inverse(forward(z))` is z again (softmax: z less the mean of its row).
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

    def forward(self, z: ArrayLike, *, n_threads: int | None = None) -> NDArray[Any]:
        """Give act(z). Softmax runs along the last axis; a row with +inf, or of -inf only, is NaN."""
        if (gpu := device_kernels("auto", z)) is not None:
            on_gpu: NDArray[Any] = gpu.forward(self.name, z)
            return on_gpu
        return _core.forward(self.name, z, n_threads)

    def inverse(
        self, n: ArrayLike, *, margin: float | None = None, n_threads: int | None = None
    ) -> NDArray[Any]:
        """Give the z with act(z) = n, after clipping n into the range.

        Values are clipped to at least `margin` inside every finite end of the range that `forward` only
        comes close to: sigmoid to [margin, 1 - margin], tanh to ±(1 - margin), elu to -1 + margin,
        softplus to margin, softminus to -margin, softmax to margin from below alone (a common factor of a
        row is but a constant of its logs, so its values may be of any size). ReLU is clipped to its end 0 itself,
        which it reaches, and gives the z of least magnitude. Softmax gives the z whose row has mean zero.
        An infinite end passes infinities through.

        Parameters
        ----------
        n : array of float32 or float64
        margin : float, optional
            Above 0 and below 0.5; by default the machine epsilon of the dtype. Next to ±1 no margin is
            smaller than the spacing of the floats there.
        n_threads : int, optional
            Threads of this call.
        """
        if (gpu := device_kernels("auto", n)) is not None:
            on_gpu: NDArray[Any] = gpu.inverse(self.name, n, margin)
            return on_gpu
        return _core.inverse(self.name, n, margin, n_threads)

    def derivative(self, z: ArrayLike, *, n_threads: int | None = None) -> NDArray[Any]:
        """Give d act(z)_i / d z_i at z; of softmax the diagonal of the Jacobian, n(1 - n).

        At its kink ReLU gives 0 and leaky ReLU its slope below, 0.01.
        """
        if (gpu := device_kernels("auto", z)) is not None:
            on_gpu: NDArray[Any] = gpu.derivative(self.name, z)
            return on_gpu
        return _core.derivative(self.name, z, n_threads)

    def jacobian(self, v: ArrayLike, n: ArrayLike, *, n_threads: int | None = None) -> NDArray[Any]:
        """Give J v for the Jacobian J, a symmetric matrix, at the z with act(z) = n; it takes n, not z.

        J is diagonal, but for softmax along the last axis: diag(n) - n nᵀ.

        Parameters
        ----------
        v, n : arrays of float32 or float64
            Of one shape and dtype.
        n_threads : int, optional
            Threads of this call.
        """
        if (gpu := device_kernels("auto", v, n)) is not None:
            on_gpu: NDArray[Any] = gpu.jacobian(self.name, v, n)
            return on_gpu
        return _core.jacobian(self.name, v, n, n_threads)

    def squared_slopes(self, n: ArrayLike, *, n_threads: int | None = None) -> NDArray[float64]:
        """Give, for each column of the values n, a matrix, the sum over rows of the squared diagonal of `jacobian`.

        Parameters
        ----------
        n : (d, m) array of float32 or float64
        n_threads : int, optional
            Threads of this call.
        """
        if (gpu := device_kernels("auto", n)) is not None:
            on_gpu: NDArray[float64] = gpu.squared_slopes(self.name, n)
            return on_gpu
        return _core.squared_slopes(self.name, n, n_threads)


activations = MappingProxyType(
    {activation[0]: Activation(*activation) for activation in _core.activations()}
)
"""The activations by name, in a mapping that cannot be changed."""
