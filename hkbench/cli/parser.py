"""The parser of every command, which ends with 64 for a wrong argument."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from hkbench.errors import UsageError


class Parser(argparse.ArgumentParser):
    """argparse ends with 2 for a wrong argument, which here means "not correct"; this one ends with 64."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(UsageError.exit_code, f"{self.prog}: {message}\n")
