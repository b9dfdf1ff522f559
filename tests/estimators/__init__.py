"""Tests of bpls_fast.estimators."""
