"""Names of the contenders that several files share. Results are compared by these names: a new one starts a new row."""

from collections.abc import Iterable

OURS = "ours"
OURS_FLOAT32 = "ours, float32 copy"
"""Ours on the float32 copy of bytes that the competitors get."""
BARE = "bare C++"
"""The same call without Python: not a competitor."""
NUMKONG = "numkong"
"""NumKong on bytes that are already transposed, as it needs them."""
NUMKONG_TRANSPOSING = "numkong, transposing"
"""NumKong on rows, as ours gets them: the transpose is part of the call."""
ALGORITHM_2 = "ours, Algorithm 2"
ADAM = "Adam, tuned"
COMPILED_ADAM = "Adam, tuned, torch.compile"
MLP = "MLPClassifier"
RBF_RIDGE = "RBFSampler + RidgeClassifier"
ELM = "ELM"
TABLE_MLP = "MLPClassifier or MLPRegressor"
"""scikit-learn's MLP of the task, on small tables."""


def competitors(names: Iterable[str]) -> list[str]:
    """Return the names that are neither ours nor a call without Python."""
    return [name for name in names if not name.startswith(OURS) and name != BARE]
