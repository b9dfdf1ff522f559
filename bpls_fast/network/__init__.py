"""Networks: sizes, activations, weights, prediction, and the formats they are exported to. Nothing here trains."""

from bpls_fast.network.network import Network
from bpls_fast.network.predictor import Predictor

__all__ = ["Network", "Predictor"]
