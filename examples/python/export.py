"""Train a network on scikit-learn's digits, export it to every format and compare the outputs of each copy.

To keep the files, name a folder: python export.py FOLDER. onnxruntime and PyTorch are used if they are installed.
"""

import importlib.util
import sys
import tempfile
from pathlib import Path

import numpy as np

import bpls_fast as bf


def train():
    """Return a network that recognises handwritten digits, and test rows."""
    x, y, x_test, y_test = bf.datasets.load("digits")
    net = bf.Network([64, 60, 10], activation="relu", seed=0, input_scale=1 / 16)  # pixels: 0 to 16
    bf.fit_refined(net, x, y)
    print(f"trained: {(net.predict(x_test) == y_test).mean():.1%} of the test digits")
    return net, x_test


def export(net, folder):
    """Write the network in every file format."""
    net.save(folder / "digits.npz")
    net.to_safetensors(folder / "digits.safetensors")
    net.to_onnx(folder / "digits.onnx", input_dtype="uint8")
    net.to_c_header(folder / "digits.h", "digits")
    for path in sorted(folder.glob("digits.*")):
        print(f"{path.name}: {path.stat().st_size:,} bytes")


def check(name, outputs, expected):
    """Compare the outputs of a copy with those of the original network."""
    print(f"{name}: outputs differ by at most {np.abs(outputs - expected).max():.0e}")
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-5)


def main(folder):
    """Export the network, read it back, and run it in other libraries."""
    net, rows = train()
    export(net, folder)
    expected = net.forward(rows)
    check("npz", bf.Network.load(folder / "digits.npz").forward(rows), expected)
    check(
        "safetensors",
        bf.Network.from_safetensors(folder / "digits.safetensors").forward(rows),
        expected,
    )
    check("ONNX", bf.Network.from_onnx(folder / "digits.onnx").forward(rows), expected)
    if importlib.util.find_spec("onnxruntime"):
        import onnxruntime

        session = onnxruntime.InferenceSession(folder / "digits.onnx")
        check("onnxruntime", session.run(None, {"inputs": rows})[0], expected)
    if importlib.util.find_spec("torch"):
        import torch

        with torch.inference_mode():
            check(
                "PyTorch", net.to_torch()(torch.tensor(rows, dtype=torch.float32)).numpy(), expected
            )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
