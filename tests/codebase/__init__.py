"""Tests of the source tree and of what is built from it."""
