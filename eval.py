#!/usr/bin/env python3
"""`eval.py --help` says what it does; the same as `hkbench eval`."""

import sys

from hkbench.bootstrap import start

if __name__ == "__main__":
    sys.exit(start("eval"))
