"""An activation that a format cannot express is refused by name, not dropped or mistaken for another."""

import pytest

from bpls_fast.network.formats import c_header, onnx, torch
from tests.support.exported import network


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch):
    """Return the parts of a network with tanh, which no format has for the length of a test."""
    for module in (c_header, onnx, torch):
        fewer = {name: code for name, code in module.ACTIVATIONS.items() if name != "tanh"}
        monkeypatch.setattr(module, "ACTIVATIONS", fewer)
    return network("tanh")._parts()


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("ONNX", lambda path, parts: onnx.write(path, parts, "float32")),
        ("the C header", lambda path, parts: c_header.write(path, parts, "net", "float32")),
        ("PyTorch", lambda path, parts: torch.to_module(parts, None)),
    ],
)
def test_a_format_names_the_activation_that_it_cannot_express(name, write, parts, tmp_path) -> None:
    path = tmp_path / "network"
    with pytest.raises(ValueError, match=f"activation is 'tanh', which {name} cannot express"):
        write(path, parts)
    assert not path.exists()
