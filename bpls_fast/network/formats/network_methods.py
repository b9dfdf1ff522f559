"""The methods of `Network` that save, load, export and import it. A file format adds its own file and its methods here.

Formats are imported when they are used.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

    from bpls_fast.network.formats.parts import Parts

__all__ = ["FormatMethods"]


class FormatMethods:
    """Export to every format and import from it, by way of `Parts`; `Network` converts itself to and from these."""

    if TYPE_CHECKING:

        def _parts(self) -> Parts: ...

        @classmethod
        def _from_parts(cls, parts: Parts, source: str) -> Self: ...

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the network to a `.npz` file without pickle, with a format version and a checksum of every array.

        The file is written completely or not at all. Labels must be numbers, booleans or strings.
        """
        from bpls_fast.network.formats import npz

        npz.write(path, self._parts())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a network that `save` wrote; any other or damaged file raises ValueError.

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

        return cls._from_parts(npz.read(path), repr(os.fspath(path)))

    def to_safetensors(self, path: str | os.PathLike[str]) -> None:
        """Write the network to a safetensors file, the one that `bpls::Network` loads in C++.

        Its tensors are `layers.0.weight` (inputs, neurons), `layers.0.bias` and so on in float64; the activations, the
        input scale and the labels are in the metadata. Labels must be numbers, booleans or strings.
        """
        from bpls_fast.network.formats import safetensors

        safetensors.write(path, self._parts())

    @classmethod
    def from_safetensors(cls, path: str | os.PathLike[str]) -> Self:
        """Read a network that `to_safetensors` wrote, with the same bits; any other file raises ValueError.

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

        return cls._from_parts(safetensors.read(path), repr(os.fspath(path)))

    def to_onnx(self, path: str | os.PathLike[str], *, input_dtype: str = "float32") -> None:
        """Write the network as an ONNX model, opset 13, that computes in float32. The onnx package is not needed.

        The model's input is `inputs` (rows, inputs), its output `outputs`, the result of `forward`. The input scale is
        folded into the weights of the first layer. Labels must be numbers, booleans or strings; they are in the
        metadata.

        Parameters
        ----------
        path : path
        input_dtype : {"float32", "uint8"}
            The dtype of the model's input. Bytes are scaled as by `forward`: by `input_scale`, by default 1/255.
        """
        from bpls_fast.network.formats import onnx

        onnx.write(path, self._parts(), input_dtype)

    @classmethod
    def from_onnx(cls, path: str | os.PathLike[str]) -> Self:
        """Read an ONNX model, ours or another tool's, that is a chain of layers; any other raises ValueError.

        Layers are Gemm, or MatMul and Add, with the activations of `bpls_fast.activations`. `input_scale` becomes 1,
        also for bytes, so that the network accepts what the model accepts. Nothing is executed and no other file is
        opened.

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

        return cls._from_parts(onnx.read(path), repr(os.fspath(path)))

    def to_torch(self, dtype: Any = None) -> Any:
        """Return the network as a PyTorch module, `nn.Sequential`, that shares no memory with it.

        The input scale, if the network has one, is folded into the weights of the first layer.

        Parameters
        ----------
        dtype : torch.dtype, optional
            The dtype of its parameters, by default PyTorch's default dtype.

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
    def from_torch(cls, module: Any) -> Self:
        """Convert a PyTorch module: an `nn.Sequential` of Linear layers, each with an activation of ours or none.

        `input_scale` becomes 1, also for bytes, so that the network accepts what the module accepts. Set it to 1/255 if
        the module was trained on bytes divided by 255 and the network is to be applied to the bytes themselves. Dropout
        is omitted: it does not change predictions. A module of any other kind raises ValueError.

        Examples
        --------
        >>> import torch
        >>> import bpls_fast as bf
        >>> bf.Network.from_torch(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1)))
        Network([4, 3, 1], activation='relu', output_activation='identity', bias=True)
        """
        from bpls_fast.network.formats import torch

        return cls._from_parts(torch.from_module(module), "module")

    def to_c_header(
        self, path: str | os.PathLike[str], name: str = "network", *, dtype: str = "float32"
    ) -> None:
        """Write the network as one C header, for C99 and C++: no allocation, no dependency other than <math.h>.

        It defines `<name>_forward(x, y)` and `<name>_decision(x, y)`; with `classes` also `<name>_predict(x)`, which
        returns the number of the class, and `<name>_classes`, the labels as strings. The input scale is folded into the
        weights.

        Parameters
        ----------
        path : path
        name : str
            The prefix of all names in the header.
        dtype : {"float32", "float64"}
            The type of the arithmetic, `float` or `double`.

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
