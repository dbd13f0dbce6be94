"""Convert an edge list into a workspace; the same as ``ooc-pf convert``."""

import sys

from ooc_pf.commands.cli import main

if __name__ == "__main__":
    sys.exit(main(["convert", *sys.argv[1:]]))
