"""Tests of bpls_fast.cuda, and what they need."""
