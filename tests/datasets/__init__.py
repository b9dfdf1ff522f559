"""Tests of bpls_fast.datasets."""
