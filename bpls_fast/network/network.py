"""The network: layer sizes, activations, weights, and the forward pass. It knows nothing of how it is trained.

Weights are float64 matrices with one column per neuron; with a bias their last row belongs to it. The arithmetic
follows the data: float64 rows run in float64, float32 and uint8 rows in float32.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bpls_fast import _core
from bpls_fast.kernels import NonFiniteError, linear
from bpls_fast.kernels.activations import Activation, activations
from bpls_fast.kernels.backend import (
    device_kernels,
    on_device,
    split_on_out_of_memory,
    to_backend,
    to_device_of,
    to_numpy,
)

if TYPE_CHECKING:
    from bpls_fast.network.formats.parts import Parts
    from bpls_fast.training.cost import Cost

__all__ = ["Network"]

ActivationName = str | Activation

BYTE_SCALE = 1 / 255
"""What rows of uint8 are multiplied by, so that pixels lie between 0 and 1."""


class Network:
    """A fully-connected feed-forward network.

    Parameters
    ----------
    layer_sizes : sequence of int
        Inputs, neurons of every hidden layer, outputs: at least two numbers.
    activation : str, Activation or sequence of them
        The activation of the hidden layers, or one for each of them; names or values of `bpls_fast.activations`.
    output_activation : str or Activation
        The activation of the last layer.
    bias : bool
        Whether the layers have biases.
    seed : int, sequence of int, numpy.random.Generator or None
        What the initial weights are drawn with. The same number gives the same weights; None other ones each time.
    low, high : float
        The initial weights are uniform on [low, high].
    input_scale : float, optional
        What every input is multiplied by on its way into the first layer. By default 1/255 for rows of uint8 and 1 for
        floats; training fixes it, so that a network trained on bytes takes the same numbers as floats, too.

    Attributes
    ----------
    layer_sizes : tuple of int
    activations : tuple of Activation
        One for each layer, the last one of the outputs.
    backend : str
        Where it runs, "cpu" or "cuda"; `to` chooses.
    bias : bool
    input_scale : float or None
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
    ) -> None:
        self._shape(layer_sizes, activation, output_activation, bias, input_scale)
        try:
            ordered = bool(np.isfinite(low) and np.isfinite(high - low) and low <= high)
        except TypeError:
            ordered = False
        if not ordered:
            raise ValueError(
                f"low and high are {low!r} and {high!r}; expected finite numbers, low <= high"
            )
        try:
            random = np.random.default_rng(seed)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"seed is {seed!r}; expected whole numbers >= 0, a Generator or None: {error}"
            ) from error
        self._weights = [random.uniform(low, high, shape) for shape in self.weight_shapes]

    def _shape(
        self,
        layer_sizes: Sequence[int],
        activation: ActivationName | Sequence[ActivationName],
        output_activation: ActivationName,
        bias: bool,
        input_scale: float | None,
    ) -> None:
        """Set all but the weights."""
        self.layer_sizes = _checked_sizes(layer_sizes)
        self.activations = _checked_activations(activation, output_activation, self.layer_sizes)
        if not isinstance(bias, (bool, np.bool_)):
            raise TypeError(f"bias is {bias!r}; expected True or False")
        self.bias = bool(bias)
        self.input_scale = _checked_scale(input_scale)
        self.classes: NDArray[Any] | None = None

    @property
    def weight_shapes(self) -> list[tuple[int, int]]:
        """The shapes of the weights: inputs and bias by neurons, layer by layer."""
        return [
            (n + self.bias, m)
            for n, m in zip(self.layer_sizes[:-1], self.layer_sizes[1:], strict=True)
        ]

    @property
    def weights(self) -> list[NDArray[np.float64]]:
        """The weights, first layer first. Assigning checks shapes and values and copies.

        Get them anew before changing numbers inside them: `predict_one` keeps its own form of the weights from call to
        call, and gives it up when they are asked for or assigned.
        """
        self.__dict__.pop("_packed", None)
        return self._weights

    @weights.setter
    def weights(self, weights: list[NDArray[np.float64]]) -> None:
        given = [np.array(W, dtype=np.float64) for W in weights]
        shapes = [W.shape for W in given]
        if shapes != self.weight_shapes:
            raise ValueError(f"weights have shapes {shapes}; expected {self.weight_shapes}")
        for layer, W in enumerate(given):
            if not np.isfinite(W).all():
                raise NonFiniteError(
                    f"weights[{layer}] holds NaN or infinity; expected finite numbers"
                )
        self._weights = given

    def with_weights(self, weights: Sequence[NDArray[np.float64]]) -> Network:
        """Give a network like this one with other weights."""
        other = copy.copy(self)
        other.weights = list(weights)
        return other

    def forward(self, X: ArrayLike) -> NDArray[Any]:
        """Give the outputs, one row for each row of X.

        Parameters
        ----------
        X : (d, inputs) array of uint8, float32 or float64
            Other numbers are converted to float64.

        Returns
        -------
        (d, outputs) array
            float64 if X is, else float32.
        """
        return self._last(X, [a.name for a in self.activations])

    def decision(self, X: ArrayLike) -> NDArray[Any]:
        """Give the outputs before the output activation; the largest names the class."""
        return self._last(X, [*(a.name for a in self.activations[:-1]), "identity"])

    def layer_inputs(self, X: ArrayLike) -> list[NDArray[Any]]:
        """Give what enters each layer: X itself, then the values of every hidden layer."""
        return self._run(self.rows(X), [a.name for a in self.activations[:-1]])

    def last_layer(self, A: NDArray[Any]) -> NDArray[Any]:
        """Give the outputs before their activation, from what enters the last layer."""
        return self._layer(len(self._weights) - 1, A, "identity")

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Give the class of each row where the network knows `classes`, else the outputs."""
        if self.classes is None:
            return self.forward(X)
        labels: NDArray[Any] = self.classes[to_numpy(self.decision(X)).argmax(axis=1)]
        return labels

    def predict_one(self, x: ArrayLike) -> Any:
        """Give what `predict` gives for the one row x, a vector, in about a microsecond.

        The first call packs the weights; the next ones are fast where x is a contiguous array of uint8, float32 or
        float64. `Predictor` does the same for weights that never change again.

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

    _packed: Sequence[_core.PackedNetwork] = ()

    def packed(self) -> _core.PackedNetwork:
        """Give the network as the compiled prediction has it, packed once and kept until something is changed."""
        # A change takes the list away: a thread that packs what was before it fills a list that nobody looks at.
        kept = self.__dict__.setdefault("_packed", [])
        if not kept:
            kept.append(
                _core.PackedNetwork(
                    self._weights,
                    self.bias,
                    [a.name for a in self.activations],
                    self.input_scale,
                    None if self.classes is None else tuple(self.classes),
                )
            )
        packed: _core.PackedNetwork = kept[0]
        return packed

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        self.__dict__.pop("_packed", None)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_packed"}

    def _predict_row(self, x: ArrayLike) -> Any:
        """Give what `predict_one` does, for any x and with every error."""
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the network to a `.npz` file: no pickle, a format version, a checksum of every array.

        The file appears whole or not at all. Labels must be numbers, booleans or strings.
        """
        from bpls_fast.network.formats import npz

        npz.write(path, self._parts())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Network:
        """Read a network that `save` wrote; a file that is damaged or of another kind raises ValueError.

        Examples
        --------
        >>> import os, tempfile
        >>> import bpls_fast as bf
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "net.npz")
        ...     bf.Network([4, 3, 2]).save(path)
        ...     bf.Network.load(path)
        Network([4, 3, 2], activation='softmax', output_activation='softmax', bias=True)
        """
        from bpls_fast.network.formats import npz

        return cls._of_parts(npz.read(path), repr(os.fspath(path)))

    def to_safetensors(self, path: str | os.PathLike[str]) -> None:
        """Write the network to a safetensors file, the one that `bpls::Network` loads in C++.

        Its tensors are `layers.0.weight` (inputs, neurons), `layers.0.bias` and so on in float64; activations, scale of
        the inputs and labels are in the metadata. Labels must be numbers, booleans or strings.
        """
        from bpls_fast.network.formats import safetensors

        safetensors.write(path, self._parts())

    @classmethod
    def from_safetensors(cls, path: str | os.PathLike[str]) -> Network:
        """Read a network that `to_safetensors` wrote, to the bit; any other file raises ValueError.

        Examples
        --------
        >>> import os, tempfile
        >>> import bpls_fast as bf
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "net.safetensors")
        ...     bf.Network([4, 3, 2]).to_safetensors(path)
        ...     bf.Network.from_safetensors(path)
        Network([4, 3, 2], activation='softmax', output_activation='softmax', bias=True)
        """
        from bpls_fast.network.formats import safetensors

        return cls._of_parts(safetensors.read(path), repr(os.fspath(path)))

    def to_onnx(self, path: str | os.PathLike[str], *, input_dtype: str = "float32") -> None:
        """Write the network as an ONNX model, opset 13, that computes in float32; no package is needed for that.

        Its one input is `inputs` (rows, inputs), its one output `outputs`, what `forward` gives. The scale of the
        inputs is in the weights of the first layer. Labels must be numbers, booleans or strings; they are in the
        metadata.

        Parameters
        ----------
        path : path
        input_dtype : {"float32", "uint8"}
            What the model takes. Rows of bytes are scaled as `forward` does it: by `input_scale`, or by 1/255 without.
        """
        from bpls_fast.network.formats import onnx

        onnx.write(path, self._parts(), input_dtype)

    @classmethod
    def from_onnx(cls, path: str | os.PathLike[str]) -> Network:
        """Read an ONNX model that is a chain of layers, ours or another tool's; any other raises ValueError.

        Layers are Gemm, or MatMul and Add; activations those of `bpls_fast.activations`. The network takes the numbers
        that the model takes: `input_scale` is 1, also for bytes. Nothing is executed and no other file is opened.

        Examples
        --------
        >>> import os, tempfile
        >>> import bpls_fast as bf
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "net.onnx")
        ...     bf.Network([4, 3, 2], "tanh").to_onnx(path)
        ...     bf.Network.from_onnx(path)
        Network([4, 3, 2], activation='tanh', output_activation='softmax', bias=True)
        """
        from bpls_fast.network.formats import onnx

        return cls._of_parts(onnx.read(path), repr(os.fspath(path)))

    def to_torch(self, dtype: Any = None) -> Any:
        """Give the network as a PyTorch module, `nn.Sequential`, to run or to train on; it shares no memory with ours.

        The scale of the inputs, if the network has one, is in the weights of the first layer.

        Parameters
        ----------
        dtype : torch.dtype, optional
            The type of its parameters; by default PyTorch's own, float32.

        Examples
        --------
        >>> import torch
        >>> import bpls_fast as bf
        >>> bf.Network([4, 3, 2], "tanh").to_torch(torch.float64)
        Sequential(
          (0): Linear(in_features=4, out_features=3, bias=True)
          (1): Tanh()
          (2): Linear(in_features=3, out_features=2, bias=True)
          (3): Softmax(dim=-1)
        )
        """
        from bpls_fast.network.formats import torch

        return torch.to_module(self._parts(), dtype)

    @classmethod
    def from_torch(cls, module: Any) -> Network:
        """Give the network that a PyTorch module computes: Linear layers in `nn.Sequential`, each with an activation.

        The network takes the numbers that the module takes: `input_scale` is 1, also for bytes. Set it to 1/255 if the
        module was trained on bytes divided by 255 and the network shall take the bytes themselves. Dropout does nothing
        to a prediction and is left out; a module of any other kind raises ValueError.

        Examples
        --------
        >>> import torch
        >>> import bpls_fast as bf
        >>> bf.Network.from_torch(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1)))
        Network([4, 3, 1], activation='relu', output_activation='identity', bias=True)
        """
        from bpls_fast.network.formats import torch

        return cls._of_parts(torch.of_module(module), "module")

    def to_c_header(
        self, path: str | os.PathLike[str], name: str = "network", *, dtype: str = "float32"
    ) -> None:
        """Write the network as one C header, weights and forward pass: C99 or C++, no allocation, <math.h> at most.

        It defines `<name>_forward(x, y)`, `<name>_decision(x, y)`, and with `classes` `<name>_predict(x)`, the number
        of the class, and `<name>_classes`, the labels as strings. The scale of the inputs is in the weights.

        Parameters
        ----------
        path : path
        name : str
            What all names in the header begin with.
        dtype : {"float32", "float64"}
            The type that it computes in, `float` or `double`.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import bpls_fast as bf
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "net.h"
        ...     bf.Network([4, 3, 2], "tanh").to_c_header(path, "net")
        ...     "void net_forward(const float *x, float *y)" in path.read_text()
        True
        """
        from bpls_fast.network.formats import c_header

        c_header.write(path, self._parts(), name, dtype)

    def _parts(self) -> Parts:
        """Give what a format carries of this network, once its weights were looked at."""
        from bpls_fast.network.formats.parts import Parts

        for layer, W in enumerate(self._weights):
            check_finite(W, f"weights[{layer}]")
        names = [a.name for a in self.activations]
        return Parts(
            self.layer_sizes, names, self.bias, self.input_scale, self._weights, self.classes
        )

    @classmethod
    def _of_parts(cls, parts: Parts, source: str) -> Network:
        """Give the network that was read from a source, once all of it was checked."""
        net = cls.__new__(cls)
        try:
            *hidden, output = parts.activations
            net._shape(parts.layer_sizes, hidden, output, parts.bias, parts.input_scale)
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
        """Give what rows like X are multiplied by on their way into the first layer."""
        if self.input_scale is not None:
            return self.input_scale
        return BYTE_SCALE if X.dtype == np.uint8 else 1.0

    def rows(self, X: ArrayLike, name: str = "X") -> NDArray[Any]:
        """Give X as an array of rows that fit the first layer, or say what is wrong with it."""
        X = as_matrix(X, name)
        if X.shape[1] != self.layer_sizes[0]:
            raise ValueError(
                f"{name} has {X.shape[1]} columns; expected {self.layer_sizes[0]}, the network's inputs"
            )
        return X

    def to(self, backend: str) -> Network:
        """Choose where the network runs from now on, and give it: "cpu", or "cuda" for an NVIDIA GPU.

        On the GPU, rows of NumPy are moved there and the outputs back. Rows that are on a GPU give outputs there,
        wherever the network is.

        Examples
        --------
        >>> import bpls_fast as bf
        >>> bf.Network([4, 3, 2]).to("cpu").backend
        'cpu'
        """
        if backend not in ("cpu", "cuda"):
            raise ValueError(f"backend is {backend!r}; expected 'cpu' or 'cuda'")
        device_kernels(backend)  # raises where there is no GPU
        self.backend = backend
        return self

    def _last(self, X: ArrayLike, names: Sequence[str]) -> NDArray[Any]:
        """Give the values after the last of the named activations, on the GPU if X is there."""
        rows = self.rows(X)
        if self.backend == "cuda":
            if on_device(X):
                return self._run(to_backend("cuda", rows)[0], names)[-1]
            return split_on_out_of_memory(
                lambda part: to_numpy(self._run(to_backend("cuda", part)[0], names)[-1]), rows
            )
        return self._run(rows, names)[-1]

    def _run(self, X: NDArray[Any], names: Sequence[str]) -> list[NDArray[Any]]:
        """Give X and the values after each of the named activations, layer by layer."""
        values = [X]
        for layer, name in enumerate(names):
            values.append(self._layer(layer, values[-1], name))
        return values

    def _layer(self, layer: int, A: NDArray[Any], name: str) -> NDArray[Any]:
        """Run one layer; the first one takes the scale of its inputs into its weights."""
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


def as_matrix(X: ArrayLike, name: str) -> NDArray[Any]:
    """Give X as a matrix of uint8, float32 or float64; other real numbers become float64."""
    X = to_device_of(X, X) if on_device(X) else np.asarray(X)
    if X.dtype not in (np.uint8, np.float32, np.float64):
        if on_device(X):
            raise TypeError(f"{name} has dtype {X.dtype}; expected uint8, float32 or float64")
        if X.dtype.kind not in "biuf":
            raise TypeError(f"{name} has dtype {X.dtype}; expected real numbers")
        X = X.astype(np.float64)
    if X.ndim != 2:
        raise ValueError(f"{name} has {X.ndim} dimensions; expected 2, one row for each sample")
    return X


def check_finite(values: NDArray[Any], name: str) -> None:
    """Say where the first NaN or infinity is, if there is one; bytes and whole numbers have none."""
    if (gpu := device_kernels("auto", values)) is not None:
        gpu.check_finite(values, name)
        return
    if values.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return  # one pass without a temporary; a sum may overflow where no value does
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        place = wrong[0].tolist()
        kind = "NaN" if np.isnan(values[tuple(place)]) else "infinity"
        raise NonFiniteError(f"{name} contains {kind} at {place}; expected finite numbers")


def scaled_inputs(W: NDArray[np.float64], scale: float, bias: bool) -> NDArray[np.float64]:
    """Give the weights that do to x what W does to scale·x."""
    if scale == 1.0:
        return W
    W = W.copy()
    W[: len(W) - bias] *= scale
    return W


def _checked_sizes(layer_sizes: Sequence[int]) -> tuple[int, ...]:
    try:
        sizes = tuple(int(size) for size in layer_sizes)
        whole = all(size == given for size, given in zip(sizes, layer_sizes, strict=True))
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(
            f"layer_sizes is {layer_sizes!r}; expected a sequence of whole numbers"
        ) from error
    if len(sizes) < 2 or min(sizes) < 1 or not whole:
        raise ValueError(
            f"layer_sizes is {layer_sizes!r}; expected at least two whole numbers >= 1: "
            "inputs, hidden layers, outputs"
        )
    return sizes


def _checked_activations(
    hidden: ActivationName | Sequence[ActivationName],
    output: ActivationName,
    sizes: tuple[int, ...],
) -> tuple[Activation, ...]:
    count = len(sizes) - 2
    hidden, output = _name_of(hidden), _name_of(output)
    if not isinstance(hidden, (str, Sequence, np.ndarray)):
        raise TypeError(
            f"activation is {hidden!r}; expected one of {', '.join(activations)}, or one for each hidden layer"
        )
    names = [hidden] * count if isinstance(hidden, str) else [_name_of(name) for name in hidden]
    if len(names) != count:
        raise ValueError(
            f"activation names {len(names)} activations; expected one for each of {count} hidden layers"
        )
    checked = [*(("activation", name) for name in names), ("output_activation", output)]
    if isinstance(hidden, str):
        checked.append(("activation", hidden))  # also where no layer uses it
    for argument, name in checked:
        if not isinstance(name, str) or name not in activations:
            raise ValueError(f"{argument} is {name!r}; expected one of {', '.join(activations)}")
    return tuple(activations[str(name)] for name in [*names, output])


def _name_of(activation: Any) -> Any:
    """Give the name of an Activation; names, and what is neither, stay as they are."""
    return activation.name if isinstance(activation, Activation) else activation


def _checked_scale(scale: float | None) -> float | None:
    if scale is None:
        return None
    if not isinstance(scale, (int, float, np.integer, np.floating)):
        raise TypeError(f"input_scale is {scale!r}; expected a number")
    if not np.isfinite(scale) or scale == 0:
        raise ValueError(f"input_scale is {scale!r}; expected a finite number other than 0")
    return float(scale)
