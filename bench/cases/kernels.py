"""The kernels and sizes that are compared: the one list for ratios.py and suites/test_kernels.py.

CASES are the sizes of training and prediction; SCALING shows how time grows with rows and columns; AFTER_A_PAUSE are
the cases whose first call after a pause is a row of its own; AT_EVERY_LEVEL runs at every instruction set of the CPU.
"""

import bpls_fast as bf

from .. import SMALL
from ..measure.case import Array
from . import images
from .layers import INVERTIBLE, activation_case, linear_case
from .products import components_case, cross_case, gram_case
from .solve import solve_batched_case, solve_case

DTYPES = ("float32", "float64", "uint8")
ROWS = 600 if SMALL else images.ROWS
OUTPUTS = 60
COMPONENTS = 192
SYSTEMS = 64 if SMALL else 4096


def gram_of_images() -> Array:
    return bf.gram(images.load("uint8", ROWS), bias=True)


CASES = [
    *(gram_case(dtype, ROWS, images.PIXELS) for dtype in DTYPES),
    *(gram_case(dtype, ROWS, images.PIXELS, of_images=True) for dtype in DTYPES),
    gram_case("uint8", ROWS // 12, images.PIXELS),
    gram_case("uint8", ROWS, 100),
    gram_case("uint8", ROWS // 60, 256),
    gram_case("float32", ROWS, 100),
    gram_case("float32", ROWS, 60),
    gram_case("float32", 32, 8, bare=True),
    *(
        linear_case(dtype, activation, ROWS, OUTPUTS)
        for dtype in ("float32", "uint8")
        for activation in ("softmax", "tanh")
    ),
    linear_case("float32", "softmax", ROWS, OUTPUTS, of_images=False),
    linear_case("float32", "softmax", 1, OUTPUTS, bare=True),
    linear_case("float32", "softmax", 8, OUTPUTS),
    cross_case("float32", ROWS, OUTPUTS),
    cross_case("float32", ROWS, OUTPUTS, of_images=False),
    cross_case("uint8", ROWS, OUTPUTS),
    components_case(ROWS, COMPONENTS),
    components_case(ROWS, COMPONENTS, of_images=False),
    solve_case(images.PIXELS + 1, OUTPUTS, make_gram=gram_of_images),
    solve_batched_case(16, SYSTEMS),
    solve_batched_case(32, SYSTEMS),
    *(
        activation_case(name, ROWS, OUTPUTS, inverse=inverse)
        for name in INVERTIBLE
        for inverse in (False, True)
    ),
]

MANY_ROWS = 1000 if SMALL else 1_000_000
SCALED_COLS = 16 if SMALL else 256
SCALED_ROWS = 100 if SMALL else 10_000
UNKNOWNS = (64, 128, 256) if SMALL else (64, 128, 256, 512, 1024, 2048)
SCALING = [
    *(gram_case(dtype, 8, 4, bare=True) for dtype in DTYPES),
    *(
        gram_case(dtype, rows, SCALED_COLS, rounds=3 if rows == 1_000_000 else 9)
        for dtype in DTYPES
        for rows in (100, 1000, 10_000, 100_000, 1_000_000)
        if rows <= MANY_ROWS
    ),
    *(
        gram_case(dtype, SCALED_ROWS, cols, rounds=9)
        for dtype in DTYPES
        for cols in (4, 16, 64, 1024)
        if cols != SCALED_COLS
    ),
    *(solve_case(n, OUTPUTS, rounds=9) for n in UNKNOWNS),
    *([] if SMALL else [solve_case(4096, OUTPUTS, rounds=5)]),
]

AFTER_A_PAUSE = [
    *(gram_case(dtype, ROWS, images.PIXELS) for dtype in DTYPES),
    solve_case(images.PIXELS + 1, OUTPUTS, make_gram=gram_of_images),
    linear_case("float32", "relu", ROWS // 5, 18, cols=33, of_images=False),
]

AT_EVERY_LEVEL = [
    *(gram_case(dtype, 100 if SMALL else 1000, images.PIXELS, rounds=9) for dtype in DTYPES),
    linear_case("float32", "softmax", ROWS // 6, OUTPUTS),
    activation_case("tanh", ROWS, OUTPUTS, inverse=False),
    solve_case(64 if SMALL else 512, OUTPUTS),
]
