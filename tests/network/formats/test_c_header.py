"""Networks as C headers: they compile without a warning, in C99 and C++, and compute what the networks compute."""

import subprocess

import numpy as np
import pytest

import bpls_fast as bf
from tests.support.exported import NAMES, ROWS, assert_equal_outputs, network
from tests.support.required import program

STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion", "-Wshadow"]
LANGUAGES = {"C99": ("cc", ".c", "-std=c99"), "C++": ("c++", ".cpp", "-std=c++11")}


@pytest.fixture(params=LANGUAGES)
def built(request, tmp_path):
    """Give a function that compiles a program next to the headers and gives its output."""
    compiler, ending, standard = LANGUAGES[request.param]
    program(compiler)

    def build(code, given=""):
        (tmp_path / f"main{ending}").write_text(code, encoding="utf-8")
        command = [compiler, standard, *STRICT, "-o", "program", f"main{ending}", "-lm"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        run = subprocess.run([tmp_path / "program"], input=given, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        return run.stdout

    return build


def printing(names, real, rows):
    """Give a program that reads rows and prints the outputs of all networks for each."""
    includes = "".join(f'#include "{name}.h"\n' for name in names)
    calls = "".join(
        f'        {name}_forward(x, y);\n        for (int j = 0; j < {name}_outputs; ++j) printf("%.17g ", y[j]);\n'
        for name in names
    )
    return f"""\
#include <stdio.h>
{includes}
int main(void) {{
    double given;
    {real} x[6], y[3];
    for (int i = 0; i < {rows}; ++i) {{
        for (int j = 0; j < 6; ++j) {{
            if (scanf("%lf", &given) != 1) return 1;
            x[j] = ({real})given;
        }}
{calls}    }}
    return 0;
}}
"""


@pytest.mark.parametrize(("dtype", "real"), [("float32", "float"), ("float64", "double")])
def test_the_compiled_header_gives_our_outputs(built, tmp_path, dtype, real):
    networks = {
        f"{name}_{bias}_{kind}": network(name, bias=bias, scale=scale)
        for name in NAMES
        for bias in (True, False)
        for kind, scale in (("plain", None), ("half", 0.5))
    }
    for name, net in networks.items():
        net.to_c_header(tmp_path / f"{name}.h", name, dtype=dtype)
    rows = ROWS.astype(dtype)
    text = " ".join(repr(float(value)) for value in rows.ravel())
    outputs = np.array(built(printing(networks, real, len(rows)), text).split(), np.float64)
    outputs = outputs.reshape(len(rows), len(networks), 3)
    for index, net in enumerate(networks.values()):
        assert_equal_outputs(outputs[:, index], net.forward(rows))
        if dtype == "float64":
            np.testing.assert_allclose(outputs[:, index], net.forward(rows), rtol=1e-13, atol=1e-13)


EXTREMES = [-1e30, -745.0, -104.0, -1e-30, 0.0, 1e-30, 104.0, 745.0, 1e30]


def test_activations_far_from_zero_are_those_of_the_network(built, tmp_path):
    net = bf.Network([1, 2], output_activation="identity", bias=False)
    net.weights = [np.array([[1.0, -0.5]])]
    code = ["#include <stdio.h>\n"]
    for name in NAMES:
        other = bf.Network([1, 2], output_activation=name, bias=False).with_weights(net.weights)
        other.to_c_header(tmp_path / f"{name}.h", name)
        code.append(f'#include "{name}.h"\n')
    values = ", ".join(f"{value!r}f" for value in EXTREMES)
    code.append(f"int main(void) {{\n    const float z[] = {{{values}}};\n    float y[2];\n")
    for name in NAMES:
        code.append(
            f"    for (int i = 0; i < {len(EXTREMES)}; ++i) {{\n        {name}_forward(z + i, y);\n"
            '        printf("%.9g %.9g ", y[0], y[1]);\n    }\n'
        )
    outputs = np.array(built("".join([*code, "    return 0;\n}\n"])).split(), np.float32)
    rows = np.array(EXTREMES, np.float32)[:, np.newaxis]
    for name, found in zip(NAMES, outputs.reshape(len(NAMES), -1, 2), strict=True):
        other = bf.Network([1, 2], output_activation=name, bias=False).with_weights(net.weights)
        np.testing.assert_allclose(found, other.forward(rows), rtol=1e-6, atol=1e-37, err_msg=name)


LABELS = np.array(['NAME "a"', "REAL\n\\ ??/ 5", "ß\U0001f600"])


@pytest.mark.parametrize(
    "labels", [LABELS, np.array([-3, 8, 7]), None], ids=["text", "int", "none"]
)
def test_the_header_names_the_class_that_predict_names(built, tmp_path, labels):
    net = network("tanh", classes=labels)
    net.to_c_header(tmp_path / "net.h", "net")
    if labels is None:
        assert "predict" not in (tmp_path / "net.h").read_text()
        return
    code = """\
#include <stdio.h>
#include "net.h"

int main(void) {
    float x[net_inputs];
    for (;;) {
        for (int j = 0; j < net_inputs; ++j)
            if (scanf("%f", x + j) != 1) return 0;
        printf("%s", net_classes[net_predict(x)]);
        putchar(0);
    }
}
"""
    rows = ROWS.astype(np.float32)
    text = " ".join(str(value) for value in rows.ravel())
    expected = [str(label) for label in net.predict(rows).tolist()]
    assert len(set(expected)) > 1
    assert built(code, text).split("\0")[:-1] == expected


def test_every_weight_is_written_to_its_last_bit(built, tmp_path):
    rng = np.random.default_rng(0)
    for dtype, real, whole in (("float32", "float", np.uint32), ("float64", "double", np.uint64)):
        bits = rng.integers(0, np.iinfo(whole).max, 3000, dtype=whole)
        values = bits.view(dtype)
        values = values[np.isfinite(values)][:2900]
        values[:4] = [0.0, -0.0, 1.0, np.finfo(dtype).smallest_subnormal]
        net = bf.Network([1, len(values)], output_activation="identity", bias=False)
        net.weights = [values[np.newaxis].astype(np.float64)]
        net.to_c_header(tmp_path / "net.h", "net", dtype=dtype)
        code = f"""\
#include <stdio.h>
#include "net.h"

int main(void) {{
    {real} x = 1, y[net_outputs];
    net_forward(&x, y);
    for (int i = 0; i < net_outputs; ++i) printf("%a ", net_weight_0[i]);
    return y[0] != 0;
}}
"""
        found = [float.fromhex(text) for text in built(code).split()]
        assert np.array(found, dtype).tobytes() == values.tobytes()


def test_a_header_without_exponentials_needs_no_mathematics(tmp_path):
    for name in NAMES:
        network(name).to_c_header(tmp_path / "net.h")
        text = (tmp_path / "net.h").read_text()
        assert ("math.h" in text) == (name not in ("identity", "relu", "leaky_relu")), name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "1st"}, "name is '1st'; expected a C identifier"),
        ({"name": "a-b"}, "name is 'a-b'; expected a C identifier"),
        ({"name": ""}, "name is ''; expected a C identifier"),
        ({"name": "ä"}, "name is 'ä'; expected a C identifier"),
        ({"name": None}, "name is None; expected a C identifier"),
        ({"dtype": "float16"}, "dtype is 'float16'; expected 'float32' or 'float64'"),
    ],
    ids=str,
)
def test_a_wrong_argument_is_named_and_nothing_is_written(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        network("tanh").to_c_header(tmp_path / "net.h", **arguments)
    assert not list(tmp_path.iterdir())
