#!/usr/bin/env python3
"""`run_batch.py --help` says what it does; the same as `hkbench run`."""

import sys

from hkbench.bootstrap import start

if __name__ == "__main__":
    sys.exit(start("run"))
