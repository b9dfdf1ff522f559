"""Random networks for property tests."""

from hypothesis import strategies as st

import bpls_fast as bf
from tests.support.reference import ACTIVATIONS

NAMES = list(ACTIVATIONS)


@st.composite
def networks(draw, *, largest=6, hidden=3, names=NAMES):
    sizes = draw(st.lists(st.integers(1, largest), min_size=2, max_size=hidden + 2))
    return bf.Network(
        sizes,
        draw(st.lists(st.sampled_from(names), min_size=len(sizes) - 2, max_size=len(sizes) - 2)),
        draw(st.sampled_from(names)),
        draw(st.booleans()),
        seed=draw(st.integers(0, 2**32 - 1)),
    )
