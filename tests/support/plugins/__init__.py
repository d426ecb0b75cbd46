"""Packages as somebody else would write and install them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def installed(packages: Path, name: str, entry_point: str) -> dict[str, str]:
    """Install the plug-in in the file `name`; `entry_point` is "group: name = value". Return its environment."""
    about = packages / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name(f"{name}.py"), packages)
    group, _, line = entry_point.partition(": ")
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{group}]\n{line}\n")
    return os.environ | {"PYTHONPATH": str(packages)}
