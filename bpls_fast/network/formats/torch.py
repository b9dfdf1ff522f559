"""Networks as PyTorch modules: an `nn.Sequential` of Linear layers and activations, and back.

The limits of the inputs, if the network has them, are its first module.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpls_fast.network.formats.parts import Layer, Parts

__all__ = ["from_module", "to_module"]

# The class of every activation except identity, and the accepted values of its attributes, ours first. A softplus that
# is linear from 20 on, PyTorch's default, has an error of 2e-9 there; from 50 on the error is zero.
ACTIVATIONS: dict[str, tuple[str, dict[str, tuple[float, ...]]]] = {
    "sigmoid": ("Sigmoid", {}),
    "tanh": ("Tanh", {}),
    "relu": ("ReLU", {}),
    "leaky_relu": ("LeakyReLU", {"negative_slope": (0.01,)}),
    "elu": ("ELU", {"alpha": (1.0,)}),
    "softmax": ("Softmax", {"dim": (-1, 1)}),
    "softplus": ("Softplus", {"beta": (1.0,), "threshold": (50.0, 20.0)}),
    "softminus": ("LogSigmoid", {}),
}


def to_module(parts: Parts, dtype: Any) -> Any:
    """Return the module, with parameters of the given dtype or PyTorch's default."""
    parts.check_activations(ACTIVATIONS, "PyTorch")
    nn = _torch().nn
    modules = []
    if parts.input_limits is not None:
        modules.append(_limits_module().InputLimits(parts.input_limits, dtype))
    for index, layer in enumerate(parts.layers(np.float64, parts.input_scale or 1.0)):
        modules.append(_linear(layer, dtype, index))
        if layer.activation in ACTIVATIONS:
            kind, attributes = ACTIVATIONS[layer.activation]
            chosen = {name: values[0] for name, values in attributes.items()}
            modules.append(getattr(nn, kind)(**chosen))
    return nn.Sequential(*modules)


def from_module(module: Any) -> Parts:
    """Return the layers of a module; raise TypeError or ValueError if it is not a chain of layers."""
    nn = _torch().nn
    if not isinstance(module, nn.Module):
        raise TypeError(f"module is a {type(module).__name__}; expected a torch.nn.Module")
    layers: list[Layer] = []
    limits: NDArray[np.float64] | None = None
    bare = False  # whether the last layer has no activation yet
    for place, part in _flattened(nn, module):
        _check_plain(part, place)
        name = _activation(nn, part)
        if type(part) is nn.Linear:
            layers.append(_layer(part))
            bare = True
        elif limits is None and not layers and type(part) is _limits_module().InputLimits:
            limits = np.array([_array(part.lower), _array(part.upper)])
        elif name and bare:
            layers[-1] = layers[-1]._replace(activation=name)
            bare = False
        elif not _changes_nothing(nn, part, first=not layers):
            raise ValueError(
                f"module has {part} at {place!r}; expected Linear layers, each with one activation of "
                f"bpls_fast after it or none: {', '.join(kind for kind, _ in ACTIVATIONS.values())}"
            )
    if not layers:
        raise ValueError("module has no Linear layer; expected at least 1")
    # Scale 1: the module does not divide bytes by 255.
    return Parts.from_layers(layers, 1.0, None, limits)


def _torch() -> Any:
    return importlib.import_module("torch")


def _limits_module() -> Any:
    return importlib.import_module("bpls_fast.network.formats.torch_limits")


def _linear(layer: Layer, dtype: Any, index: int) -> Any:
    torch = _torch()
    inputs, neurons = layer.weight.shape
    # Without initial values, which would advance PyTorch's random state.
    linear = torch.nn.utils.skip_init(
        torch.nn.Linear, inputs, neurons, bias=layer.bias is not None, dtype=dtype
    )
    with torch.no_grad():
        linear.weight.copy_(torch.from_numpy(layer.weight.T.copy()))
        if layer.bias is not None:
            linear.bias.copy_(torch.from_numpy(layer.bias))
    if not all(parameter.isfinite().all() for parameter in linear.parameters()):
        raise ValueError(f"weights[{index}] holds numbers too large for {linear.weight.dtype}")
    return linear


def _flattened(nn: Any, module: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the modules inside nested Sequentials in the order of execution, each with its place."""
    if type(module) is not nn.Sequential:
        yield place, module
        return
    _check_plain(module, place)
    for name, part in module._modules.items():  # named_children() omits the second use of a module
        yield from _flattened(nn, part, f"{place}.{name}" if place else name)


def _check_plain(part: Any, place: str) -> None:
    """Refuse a module that does more than its class says."""
    if part is None:
        return  # it is refused later, as not a layer
    if part._forward_hooks or part._forward_pre_hooks or "forward" in vars(part):
        raise ValueError(
            f"module has {type(part).__name__} with hooks, or a forward of its own, at {place!r}; "
            "expected modules that do what their classes do"
        )


def _activation(nn: Any, part: Any) -> str | None:
    """Return the name of the activation that a module is, or None."""
    for name, (kind, attributes) in ACTIVATIONS.items():
        if type(part) is getattr(nn, kind):
            same = all(getattr(part, key) in values for key, values in attributes.items())
            return name if same else None
    return None


def _changes_nothing(nn: Any, part: Any, *, first: bool) -> bool:
    """Return whether a module returns its input unchanged in a prediction."""
    flat = type(part) is nn.Flatten and first and (part.start_dim, part.end_dim) == (1, -1)
    return flat or type(part) in (nn.Identity, nn.Dropout)


def _layer(linear: Any) -> Layer:
    bias = None if linear.bias is None else _array(linear.bias)
    return Layer(_array(linear.weight).T, bias, "identity")


def _array(parameter: Any) -> NDArray[np.float64]:
    """Return a parameter or a buffer as an array."""
    if (
        not parameter.is_floating_point()
        or parameter.is_meta
        or parameter.layout is not _torch().strided
    ):
        raise ValueError(
            f"module has a parameter of {parameter.dtype}, {parameter.layout}, on {parameter.device}; "
            "expected floats in memory"
        )
    values: NDArray[np.float64] = parameter.detach().cpu().double().numpy()
    return values
