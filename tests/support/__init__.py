"""Helpers of the tests: references in NumPy, child processes, data."""
