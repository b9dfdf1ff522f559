"""The experiments of the paper: Tables I and II, the toy problems, the figures, and the numbers it published.

`bpls-fast paper` runs them from the command line. PyTorch (for the gradient methods) and matplotlib (for the plots)
are imported only where they are used.

Examples
--------
>>> from bpls_fast.experiments import SIGMOID, toy_errors
>>> error = toy_errors(SIGMOID, runs=20, sigmas=[0.01], methods=[])[0]
>>> bool(error.test_rmse < 0.2)
True
"""

from bpls_fast.experiments.images import accuracy_and_time, accuracy_curves, table1, table2
from bpls_fast.experiments.published import ALGORITHMS, SETTINGS, TABLE1, TABLE2, Setting
from bpls_fast.experiments.toy import LINEAR, PROBLEMS, SIGMOID, toy_errors

__all__ = [
    "ALGORITHMS",
    "LINEAR",
    "PROBLEMS",
    "SETTINGS",
    "SIGMOID",
    "TABLE1",
    "TABLE2",
    "Setting",
    "accuracy_and_time",
    "accuracy_curves",
    "table1",
    "table2",
    "toy_errors",
]
