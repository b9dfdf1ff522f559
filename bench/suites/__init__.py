"""The benchmarks that pytest runs: every test is one contender of a group, and asserts its answer."""
