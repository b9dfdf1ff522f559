"""Tests of the benchmarks themselves: rounds, curves, the report and the comparison."""
