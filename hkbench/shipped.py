"""What depends on how hkbench got here, as a checkout or as a wheel: its folders, and the commands to name."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_DATA = _PACKAGE / "_data"  #: setup.py copies the folders here when it builds a wheel; a checkout has no such folder


def shipped_folder(name: str) -> Path:
    """Return the folder `name`: of the installed package, or at the top of the checkout.

    The wheel holds plain files, which compilers and candidates read by their paths; hkbench does not run from a zip.
    """
    return _DATA / name if _DATA.is_dir() else _PACKAGE.parent / name


def cache_folder() -> Path:
    """Return ~/.cache/hkbench, or the folder below $XDG_CACHE_HOME."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").resolve() / "hkbench"


def batch_command() -> str:
    """Return the words that begin a batch, for messages."""
    return "hkbench run" if _DATA.is_dir() else "python run_batch.py"


def installing(package: str) -> str:
    """Return the command that installs a package which hkbench needs, for messages."""
    return f"pip install {package}" if _DATA.is_dir() else "make setup"
