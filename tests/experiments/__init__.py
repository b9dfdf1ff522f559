"""Tests of bpls_fast.experiments."""
