"""Tests of bpls_fast.training."""
