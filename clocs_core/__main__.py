"""`python -m clocs_core` is `clocs`."""

import sys

from clocs_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
