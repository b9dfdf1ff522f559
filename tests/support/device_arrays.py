"""Arrays of other libraries, as the simulator's device sees them."""

import numpy as np


class Foreign:
    """Somebody else's array on the device; the simulator's device is the host."""

    def __init__(self, values):
        self.values = values

    @property
    def __cuda_array_interface__(self):
        return {**self.values.__array_interface__, "version": 3, "stream": None}


VALUES = np.arange(12.0).reshape(4, 3)
