"""`python -m bpls_fast`: the same as the `bpls-fast` command."""

import sys

from bpls_fast.cli import main

if __name__ == "__main__":
    sys.exit(main())
