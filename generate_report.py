#!/usr/bin/env python3
"""`generate_report.py --help` says what it does; the same as `hkbench report`."""

import sys

from hkbench.bootstrap import start

if __name__ == "__main__":
    sys.exit(start("report"))
