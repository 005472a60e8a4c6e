"""`python -m pictolex`: the same program as `pictolex`."""

import sys

from pictolex.cli import main

if __name__ == "__main__":
    sys.exit(main())
