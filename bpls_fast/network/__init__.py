"""Networks: layer sizes, activations, weights, prediction and file formats. Nothing here trains."""

from bpls_fast.network.network import Network
from bpls_fast.network.predictor import Predictor

__all__ = ["Network", "Predictor"]
