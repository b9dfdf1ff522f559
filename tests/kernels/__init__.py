"""Tests of bpls_fast.kernels."""
