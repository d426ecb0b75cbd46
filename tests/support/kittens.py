"""HipKittens for tests: the installed headers, or a checkout for one dialect."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hkbench.errors import HkbenchError
from hkbench.toolchain.hipkittens import VARIABLES, Dialect, find_checkout, read_checkout


def kittens_root(dialect: Dialect) -> Path:
    """Return the tree that tests of a dialect use.

    It is the one that HIPKITTENS_CDNA3_ROOT or HIPKITTENS_CDNA4_ROOT names, else the one that a run would find.
    Raises HkbenchError where that is not there or does not have the dialect.
    """
    named = os.environ.get(f"HIPKITTENS_{dialect.upper()}_ROOT")
    found = read_checkout(Path(named), f"HIPKITTENS_{dialect.upper()}_ROOT") if named else find_checkout()
    found.require_dialect(dialect)
    return found.root


def kittens_or_skip(dialect: Dialect, lost: str) -> Path:
    """Return the same; skips the test where there is none and says what was not done for it."""
    try:
        return kittens_root(dialect)
    except HkbenchError as error:
        pytest.skip(f"NO HIPKITTENS FOR {dialect}, so {lost}: {error}")


@contextmanager
def checkout(dialect: Dialect) -> Iterator[None]:
    """Within it, HipKittens is the tree of `kittens_root`."""
    root = kittens_root(dialect)
    with pytest.MonkeyPatch.context() as patch:
        for name in VARIABLES:
            patch.setenv(name, str(root))
        yield
