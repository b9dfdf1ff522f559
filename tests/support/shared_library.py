"""The installed C library, called as a foreign language calls it."""

import ctypes
import functools
from pathlib import Path

import numpy as np

import bpls_fast as bf

OK, INVALID_ARGUMENT, INVALID_FILE, NOT_FINITE = 0, 1, 3, 6  # of bpls_status
F64 = 2  # of bpls_dtype


@functools.cache
def shared_library() -> ctypes.CDLL:
    folder = Path(bf.get_include()).parent / "lib"
    (path,) = [*folder.glob("libbpls.so"), *folder.glob("libbpls.dylib"), *folder.glob("bpls.dll")]
    library = ctypes.CDLL(str(path))
    handle, size, pointer = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
    library.bpls_version.restype = ctypes.c_char_p
    library.bpls_last_error.restype = ctypes.c_char_p
    library.bpls_network_parse.argtypes = [ctypes.c_char_p, size, pointer]
    library.bpls_predictor_new.argtypes = [handle, ctypes.c_int, pointer]
    library.bpls_predict_f64.argtypes = [handle, pointer, size, pointer]
    for query in (library.bpls_network_inputs, library.bpls_network_outputs):
        query.argtypes, query.restype = [handle], size
    library.bpls_network_free.argtypes = library.bpls_predictor_free.argtypes = [handle]
    return library


def parsed(file: bytes) -> "Parsed | str":
    """Give what the C library makes of a network's file, or the sentence by which it refuses it."""
    library, network = shared_library(), ctypes.c_void_p()
    status = library.bpls_network_parse(file, len(file), ctypes.byref(network))
    if status == OK:
        return Parsed(network)
    assert status == INVALID_FILE
    reason: str = library.bpls_last_error().decode(errors="replace")
    assert reason
    return reason


class Parsed:
    """A network of the C library."""

    def __init__(self, network: ctypes.c_void_p) -> None:
        self.library, self.network = shared_library(), network

    def __del__(self) -> None:
        self.library.bpls_network_free(self.network)

    @property
    def shape(self) -> tuple[int, int]:
        return (
            self.library.bpls_network_inputs(self.network),
            self.library.bpls_network_outputs(self.network),
        )

    def forward(self, x: np.ndarray) -> np.ndarray | None:
        """Give the outputs of a row of float64; None where they, or the scaled weights, are not finite."""
        predictor, outputs = ctypes.c_void_p(), np.empty(self.shape[1])
        made = self.library.bpls_predictor_new(self.network, F64, ctypes.byref(predictor))
        if made == INVALID_ARGUMENT:
            return None
        assert made == OK
        status = self.library.bpls_predict_f64(predictor, x.ctypes.data, 1, outputs.ctypes.data)
        self.library.bpls_predictor_free(predictor)
        assert status in (OK, NOT_FINITE)
        return outputs if status == OK else None
