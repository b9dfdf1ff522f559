"""The network: layer sizes, activations, weights, and the forward pass. Nothing here trains it.

Weights are float64 matrices with one column per neuron; with a bias, the last row is the bias. The arithmetic
follows the data: float64 rows are computed in float64, float32 and uint8 rows in float32.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bpls_fast.kernels import NonFiniteError, PackedNetwork, check_finite, clip_rows, linear
from bpls_fast.kernels.backend import (
    on_device,
    require_backend,
    split_on_out_of_memory,
    to_backend,
    to_numpy,
)
from bpls_fast.network.arguments import (
    ActivationName,
    as_matrix,
    checked_activations,
    checked_bias,
    checked_limits,
    checked_scale,
    checked_sizes,
    random_weights,
)
from bpls_fast.network.formats.network_methods import FormatMethods

if TYPE_CHECKING:
    from typing_extensions import Self

    from bpls_fast.network.formats.parts import Parts
    from bpls_fast.training.cost import Cost

__all__ = ["Network", "scaled_inputs"]

BYTE_SCALE = 1 / 255
"""The factor of uint8 rows: pixels become numbers between 0 and 1."""


class Network(FormatMethods):
    """A fully-connected feed-forward network.

    Parameters
    ----------
    layer_sizes : sequence of int
        The number of inputs, of neurons in every hidden layer, and of outputs: at least two numbers.
    activation : str, Activation or sequence of them
        The activation of the hidden layers, or one for each of them; names or values of `bpls_fast.activations`.
    output_activation : str or Activation
        The activation of the last layer.
    bias : bool
        Whether the layers have biases.
    seed : int, sequence of int, numpy.random.Generator or None
        The seed of the initial weights, as for `numpy.random.default_rng`. None draws other weights each time.
    low, high : float
        The initial weights are uniform on [low, high].
    input_scale : float, optional
        The factor of every input. By default it is 1 for floats and 1/255 for rows of uint8, or 1 for both in a network
        with limits. Training sets it, so that a network trained on bytes accepts the same numbers as floats.
    input_limits : (2, inputs) array of float64, optional
        The lower and the upper limit of each input; -inf and inf are none. A value outside is moved to the nearer
        limit before it is scaled. The estimators learn limits from the training rows.

    Attributes
    ----------
    layer_sizes : tuple of int
    activations : tuple of Activation
        One for each layer, the last one that of the outputs.
    backend : str
        Where it runs, "cpu" or "cuda"; set it by `to`.
    bias : bool
    input_scale : float or None
    input_limits : array or None
        Assignment checks and copies them.
    classes : array or None
        The label of each output; training a classifier sets it.

    Examples
    --------
    >>> import numpy as np
    >>> import bpls_fast as bf
    >>> net = bf.Network([4, 3, 2], activation="sigmoid", output_activation="identity", seed=1)
    >>> net
    Network([4, 3, 2], activation='sigmoid', output_activation='identity', bias=True)
    >>> [W.shape for W in net.weights]
    [(5, 3), (4, 2)]
    >>> net.forward(np.zeros((6, 4))).shape
    (6, 2)
    """

    backend = "cpu"

    def __init__(
        self,
        layer_sizes: Sequence[int],
        activation: ActivationName | Sequence[ActivationName] = "softmax",
        output_activation: ActivationName = "softmax",
        bias: bool = True,
        seed: Any = 0,
        low: float = -1.0,
        high: float = 1.0,
        *,
        input_scale: float | None = None,
        input_limits: ArrayLike | None = None,
    ) -> None:
        self._set_architecture(
            layer_sizes, activation, output_activation, bias, input_scale, input_limits
        )
        self._weights = random_weights(self.weight_shapes, seed, low, high)

    def _set_architecture(
        self,
        layer_sizes: Sequence[int],
        activation: ActivationName | Sequence[ActivationName],
        output_activation: ActivationName,
        bias: bool,
        input_scale: float | None,
        input_limits: ArrayLike | None,
    ) -> None:
        """Set all but the weights."""
        self.layer_sizes = checked_sizes(layer_sizes)
        self.activations = checked_activations(activation, output_activation, self.layer_sizes)
        self.bias = checked_bias(bias)
        self.input_scale = checked_scale(input_scale)
        self.input_limits = input_limits
        self.classes: NDArray[Any] | None = None

    @property
    def weight_shapes(self) -> list[tuple[int, int]]:
        """The shapes of the weights: inputs and bias by neurons, layer by layer."""
        return [
            (n + self.bias, m)
            for n, m in zip(self.layer_sizes[:-1], self.layer_sizes[1:], strict=True)
        ]

    _limits: NDArray[np.float64] | None = None

    @property
    def input_limits(self) -> NDArray[np.float64] | None:
        """The lower and the upper limit of each input, or None."""
        return self._limits

    @input_limits.setter
    def input_limits(self, limits: ArrayLike | None) -> None:
        self._limits = checked_limits(limits, self.layer_sizes[0])

    @property
    def weights(self) -> list[NDArray[np.float64]]:
        """The weights, first layer first. Assignment checks shapes and values and copies them.

        To change numbers in place, get this attribute again before each change: `predict_one` keeps a packed copy of
        the weights, which is dropped when this attribute is read or assigned.
        """
        self.__dict__.pop("_packed", None)
        return self._weights

    @weights.setter
    def weights(self, weights: list[NDArray[np.float64]]) -> None:
        self._take_weights([np.array(W, dtype=np.float64) for W in weights])

    def _take_weights(self, weights: list[NDArray[np.float64]]) -> None:
        """Check shapes and values of weights and take them without a copy."""
        shapes = [W.shape for W in weights]
        if shapes != self.weight_shapes:
            raise ValueError(f"weights have shapes {shapes}; expected {self.weight_shapes}")
        for layer, W in enumerate(weights):
            if not np.isfinite(W).all():
                raise NonFiniteError(
                    f"weights[{layer}] holds NaN or infinity; expected finite numbers"
                )
        self._weights = weights

    def with_weights(self, weights: Sequence[NDArray[np.float64]]) -> Network:
        """Return a copy of this network with other weights."""
        other = copy.copy(self)
        other.weights = list(weights)
        return other

    def with_activation(self, activation: ActivationName) -> Network:
        """Return a copy of this network with another activation of all hidden layers."""
        other = copy.copy(self)
        output = self.activations[-1]
        other.activations = checked_activations(activation, output, self.layer_sizes)
        return other

    def owning(self, weights: Sequence[NDArray[np.float64]]) -> Network:
        """Return a copy of this network with other weights, which are not copied: nobody else may change them."""
        other = copy.copy(self)
        other._take_weights(list(weights))
        return other

    def forward(self, X: ArrayLike) -> NDArray[Any]:
        """Return the outputs, one row for each row of X.

        Parameters
        ----------
        X : (d, inputs) array of uint8, float32 or float64
            Other numbers are converted to float64.

        Returns
        -------
        (d, outputs) array
            float64 if X is, else float32.
        """
        return self._outputs(X, activated=True)

    def decision(self, X: ArrayLike) -> NDArray[Any]:
        """Return the outputs before the output activation; the class is that of the largest."""
        return self._outputs(X, activated=False)

    def layer_inputs(self, X: ArrayLike) -> list[NDArray[Any]]:
        """Return the inputs of each layer: X itself, inside the limits, then the values of every hidden layer."""
        return self._run_layers(self.limited(self.rows(X)), [a.name for a in self.activations[:-1]])

    def last_layer(self, A: NDArray[Any]) -> NDArray[Any]:
        """Return the outputs before their activation, from the inputs A of the last layer."""
        return self._run_layer(len(self._weights) - 1, A, "identity")

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each row if the network has `classes`, else the outputs."""
        if self.classes is None:
            return self.forward(X)
        labels: NDArray[Any] = self.classes[to_numpy(self.decision(X)).argmax(axis=1)]
        return labels

    def predict_one(self, x: ArrayLike) -> Any:
        """Return the prediction for one row x, a vector, in about a microsecond.

        The first call packs the weights. Later calls are fast if x is a contiguous array of uint8, float32 or float64.
        `Predictor` does the same for weights that do not change.

        Examples
        --------
        >>> import numpy as np
        >>> import bpls_fast as bf
        >>> net = bf.Network([2, 2], output_activation="identity", bias=False, low=1, high=1)
        >>> net.predict_one(np.array([1.0, 2.0]))
        array([3., 3.])
        """
        kept = self._packed
        found = (kept[0] if kept else self.packed()).predict_one(x)
        return self._predict_row(x) if found is None else found

    _packed: Sequence[PackedNetwork] = ()

    def packed(self) -> PackedNetwork:
        """Return the network in the form of the compiled prediction; it is kept until something changes."""
        # A change drops the list: a thread that packs outdated weights fills a list that nobody reads.
        kept = self.__dict__.setdefault("_packed", [])
        if not kept:
            kept.append(
                PackedNetwork(
                    self._weights,
                    self.bias,
                    [a.name for a in self.activations],
                    self.input_scale,
                    None if self.classes is None else tuple(self.classes),
                    self.input_limits,
                )
            )
        packed: PackedNetwork = kept[0]
        return packed

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        self.__dict__.pop("_packed", None)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_packed"}

    def _predict_row(self, x: ArrayLike) -> Any:
        """Return what `predict_one` does, for any x and with every error."""
        x = np.asarray(x)
        if x.ndim != 1:
            raise ValueError(
                f"x has {x.ndim} dimensions; expected one row of {self.layer_sizes[0]} numbers"
            )
        return self.predict(x[np.newaxis])[0]

    def cost(self, d: int, *, resolve: bool = False, refinements: int = 0) -> Cost:
        """Count the multiply-adds of one backward sweep over d rows; see `bpls_fast.training.cost.sweep_cost`.

        Examples
        --------
        >>> import bpls_fast as bf
        >>> bf.Network([784, 60, 10]).cost(60_000)
        Cost(forward=2826000000, gram=21486360000, solve=117623460, target=72608865)
        """
        from bpls_fast.training.cost import sweep_cost

        return sweep_cost(self, d, resolve=resolve, refinements=refinements)

    def _parts(self) -> Parts:
        """Return what file formats store of this network, after checking its weights."""
        from bpls_fast.network.formats.parts import Parts

        for layer, W in enumerate(self._weights):
            check_finite(W, f"weights[{layer}]")
        names = [a.name for a in self.activations]
        return Parts(
            self.layer_sizes,
            names,
            self.bias,
            self.input_scale,
            self._weights,
            self.classes,
            self.input_limits,
        )

    @classmethod
    def _from_parts(cls, parts: Parts, source: str) -> Self:
        """Return the network that was read from a source, after checking all of it."""
        net = cls.__new__(cls)
        try:
            *hidden, output = parts.activations
            net._set_architecture(
                parts.layer_sizes,
                hidden,
                output,
                parts.bias,
                parts.input_scale,
                parts.input_limits,
            )
            net.weights = parts.weights
            if parts.classes is not None and parts.classes.shape != (net.layer_sizes[-1],):
                raise ValueError(
                    f"classes have shape {parts.classes.shape}; expected ({net.layer_sizes[-1]},)"
                )
        except (TypeError, ValueError) as error:
            raise ValueError(f"{source} holds no valid network: {error}") from error
        net.classes = parts.classes
        return net

    def scale_of(self, X: NDArray[Any]) -> float:
        """Return the factor of inputs with the dtype of X."""
        if self.input_scale is not None:
            return self.input_scale
        return BYTE_SCALE if X.dtype == np.uint8 and self.input_limits is None else 1.0

    def limited(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return rows with every value moved into the limits of its input: a copy, or X if there are no limits."""
        return X if self.input_limits is None else clip_rows(X, self.input_limits)

    def rows(self, X: ArrayLike, name: str = "X") -> NDArray[Any]:
        """Return X as a matrix with as many columns as the network has inputs; raise if it is none."""
        X = as_matrix(X, name)
        if X.shape[1] != self.layer_sizes[0]:
            raise ValueError(
                f"{name} has {X.shape[1]} columns; expected {self.layer_sizes[0]}, the network's inputs"
            )
        return X

    def to(self, backend: str) -> Network:
        """Set where the network runs, "cpu", or "cuda" for an NVIDIA GPU, and return the network.

        With "cuda", NumPy's rows are moved to the GPU and the outputs back. The outputs of rows that are on a GPU are
        there, wherever the network runs.

        Examples
        --------
        >>> import bpls_fast as bf
        >>> bf.Network([4, 3, 2]).to("cpu").backend
        'cpu'
        """
        if backend not in ("cpu", "cuda"):
            raise ValueError(f"backend is {backend!r}; expected 'cpu' or 'cuda'")
        require_backend(backend)
        self.backend = backend
        return self

    def _outputs(self, X: ArrayLike, *, activated: bool) -> NDArray[Any]:
        """Return the outputs after or before their activation, on the GPU if X is there."""
        rows = self.rows(X)
        if self.input_limits is not None:
            # The compiled prediction clips without a copy of all rows; it returns None for rows that it does not take.
            found = self.packed().forward(rows, activated, None) if self.backend == "cpu" else None
            if found is not None:
                return found
            rows = self.limited(rows)
        names = [a.name for a in self.activations]
        if not activated:
            names[-1] = "identity"
        if self.backend == "cuda":
            if on_device(X):
                return self._run_layers(to_backend("cuda", rows)[0], names)[-1]
            return split_on_out_of_memory(
                lambda part: to_numpy(self._run_layers(to_backend("cuda", part)[0], names)[-1]),
                rows,
            )
        return self._run_layers(rows, names)[-1]

    def _run_layers(self, X: NDArray[Any], names: Sequence[str]) -> list[NDArray[Any]]:
        """Return X and the values after each of the named activations, layer by layer."""
        values = [X]
        for layer, name in enumerate(names):
            values.append(self._run_layer(layer, values[-1], name))
        return values

    def _run_layer(self, layer: int, A: NDArray[Any], name: str) -> NDArray[Any]:
        """Run one layer; in the first, the weights include the input scale."""
        W = self._weights[layer]
        if layer == 0:
            W = scaled_inputs(W, self.scale_of(A), self.bias)
        with np.errstate(over="ignore"):  # the kernel refuses infinite weights
            W = W.astype(np.float64 if A.dtype == np.float64 else np.float32, copy=False)
        try:
            return linear(A, W, bias=self.bias, activation=name)
        except ValueError:
            if layer == 0:
                check_finite(A, "X")
            raise

    def __repr__(self) -> str:
        hidden = [a.name for a in self.activations[:-1]]
        same = hidden[0] if len(set(hidden)) == 1 else hidden
        return (
            f"Network({list(self.layer_sizes)}, activation={same!r}, "
            f"output_activation={self.activations[-1].name!r}, bias={self.bias})"
        )


def scaled_inputs(W: NDArray[np.float64], scale: float, bias: bool) -> NDArray[np.float64]:
    """Return the weights that map x to what W maps scale·x to."""
    if scale == 1.0:
        return W
    W = W.copy()
    W[: len(W) - bias] *= scale
    return W
