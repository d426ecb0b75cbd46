#!/usr/bin/env python3
"""`generate.py --help` says what it does; the same as `hkbench generate`."""

import sys

from hkbench.bootstrap import start

if __name__ == "__main__":
    sys.exit(start("generate"))
