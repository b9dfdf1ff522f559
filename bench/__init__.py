"""Benchmarks of bpls_fast: what is compared, how it is measured, and how results are reported."""

import os

from harness import ROOT as ROOT

SMALL = os.environ.get("BPLS_BENCH_SMALL") == "1"
"""Whether all sizes are cut down to a smoke test, whose times mean nothing."""
