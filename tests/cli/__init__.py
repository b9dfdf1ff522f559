"""Tests of bpls_fast.cli."""
