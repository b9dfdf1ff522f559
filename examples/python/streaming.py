"""Learn from a stream of rows in constant memory while the task slowly changes.

The class of a point is its sector, and the sectors turn by 90 degrees over the stream. A network that keeps learning
follows them; a network that stops after the first chunks does not.
"""

import copy

import numpy as np

import bpls_fast as bf

CHUNKS, ROWS, SECTORS = 40, 1000, 4


def chunk(number):
    """Return random points and their sectors at the time of this chunk."""
    x = np.random.default_rng(number).normal(size=(ROWS, 2))
    angle = np.arctan2(x[:, 1], x[:, 0]) - 0.5 * np.pi * number / CHUNKS
    return x, (angle * SECTORS / (2 * np.pi)).astype(int) % SECTORS


def main():
    """Predict every chunk with both networks before one of them learns it."""
    model = bf.BPLSClassifier((30,), "tanh", random_state=0)
    stopped = None
    print("chunk   learning   stopped")
    for number in range(CHUNKS):
        x, y = chunk(number)
        if number == 10:
            stopped = copy.deepcopy(model)
        if stopped and number % 5 == 4:
            print(f"{number:5}   {model.score(x, y):8.1%}   {stopped.score(x, y):7.1%}")
        model.partial_fit(x, y, classes=range(SECTORS))
    assert model.score(x, y) > stopped.score(x, y) + 0.1


if __name__ == "__main__":
    main()
