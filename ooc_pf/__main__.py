"""``python -m ooc_pf`` is the command ``ooc-pf``."""

import sys

from .commands.cli import main

if __name__ == "__main__":
    sys.exit(main())
