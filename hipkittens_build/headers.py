"""Where HipKittens' headers are: the checkout that a variable names, else the folder of scripts/install_hipkittens.py.

Standard library only: that script uses it before anything is installed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

CHECKOUTS = ("HIPKITTENS_ROOT", "THUNDERKITTENS_ROOT")  #: name a checkout of HipKittens; the first that is set counts
INSTALLED = Path(__file__).resolve().parents[1] / ".hipkittens"  #: made by scripts/install_hipkittens.py
STAMP = ".complete"  #: file in it: the package's name and version, then the hash of `include/` (`content`)


def checkout_root() -> tuple[str | None, Path] | None:
    """Return the variable that names the checkout (None: installed headers), and the folder of include/kittens.cuh.

    None where no variable is set and nothing is installed. A folder that a variable names need not exist.
    """
    for name in CHECKOUTS:
        if os.environ.get(name):
            return name, Path(os.environ[name])
    return (None, INSTALLED) if (INSTALLED / STAMP).is_file() else None


def content(include: Path) -> str:
    """Hash (sha256, hexadecimal) of the names and bytes of all files in a folder."""
    digest = sha256()
    for path in _files(include):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(include).as_posix()}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())
