"""Fast prediction with weights that do not change any more."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bpls_fast.network.network import Network

__all__ = ["Predictor"]


class Predictor:
    """A network for prediction only: a packed copy of its weights, with scratch memory that is kept.

    The outputs have the same bits as those of the network. Several threads may use one predictor at the same time. One
    row is predicted with the GIL held, several rows without it.

    Parameters
    ----------
    net : Network
        Later changes to it do not change the predictor.

    Examples
    --------
    >>> import numpy as np
    >>> import bpls_fast as bf
    >>> net = bf.Network([4, 3, 2], activation="sigmoid", output_activation="identity", seed=1)
    >>> predictor = bf.Predictor(net)
    >>> x = np.ones(4, dtype=np.float32)
    >>> bool(np.all(predictor.predict_one(x) == net.forward(x[np.newaxis])[0]))
    True
    """

    __slots__ = ("_net", "_packed")

    def __init__(self, net: Network) -> None:
        if not isinstance(net, Network):
            raise TypeError(f"net is a {type(net).__name__}; expected a Network")
        self._net = net.with_weights(net.weights)
        self._packed = self._net.packed()

    def forward(self, X: ArrayLike, *, n_threads: int | None = None) -> NDArray[Any]:
        """Return the outputs, one row for each row of X, as `Network.forward` does."""
        found = self._packed.forward(X, True, n_threads)
        return self._net.forward(X) if found is None else found

    def predict(self, X: ArrayLike, *, n_threads: int | None = None) -> NDArray[Any]:
        """Return the class of each row if the network has `classes`, else the outputs."""
        classes = self._net.classes
        if classes is None:
            return self.forward(X, n_threads=n_threads)
        decision = self._packed.forward(X, False, n_threads)
        if decision is None:
            return self._net.predict(X)
        labels: NDArray[Any] = classes[np.argmax(decision, axis=1)]
        return labels

    def predict_one(self, x: ArrayLike) -> Any:
        """Return the prediction for one row x, a vector, in about a microsecond."""
        found = self._packed.predict_one(x)
        return self._net.predict_one(x) if found is None else found

    def __reduce__(self) -> tuple[type[Predictor], tuple[Network]]:
        return Predictor, (self._net,)

    def __repr__(self) -> str:
        return f"Predictor({self._net!r})"
