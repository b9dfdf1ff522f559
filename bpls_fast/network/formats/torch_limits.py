"""The limits of the inputs as a PyTorch module. It is imported only where PyTorch is used."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["InputLimits"]


class InputLimits(torch.nn.Module):
    """Move every input to the nearest number inside its limits, the buffers `lower` and `upper`.

    Parameters
    ----------
    limits : (2, inputs) array
    dtype : torch.dtype, optional
        The dtype of the buffers, by default PyTorch's default dtype.
    """

    lower: torch.Tensor
    upper: torch.Tensor

    def __init__(self, limits: NDArray[np.float64], dtype: Any = None) -> None:
        super().__init__()
        rounded = torch.from_numpy(limits.copy()).to(dtype or torch.get_default_dtype())
        self.register_buffer("lower", rounded[0].clone())
        self.register_buffer("upper", rounded[1].clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the inputs inside their limits."""
        return torch.minimum(torch.maximum(x, self.lower), self.upper)

    def extra_repr(self) -> str:
        """Return the number of inputs."""
        return f"inputs={len(self.lower)}"
