"""Tests of bpls_fast.network.formats."""
