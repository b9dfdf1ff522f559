"""The `bpls-fast` command: one file for each subcommand."""

from bpls_fast.cli.main import main

__all__ = ["main"]
