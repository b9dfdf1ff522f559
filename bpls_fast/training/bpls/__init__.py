"""The paper's method, back-propagating least squares: the backward sweep and Algorithms 1 and 2 built on it."""
