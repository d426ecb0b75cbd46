#!/usr/bin/env python3
"""`monitor.py --help` says what it does; the same as `hkbench monitor`."""

import sys

from hkbench.bootstrap import start

if __name__ == "__main__":
    sys.exit(start("monitor"))
