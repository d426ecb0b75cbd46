#!/usr/bin/env python3
"""Write docs/arch-main-runner/package.mmd from the layers that import-linter holds the code to (pyproject.toml).

    python scripts/architecture.py

The test tests/unit/test_architecture.py fails where the file is not what this writes.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "docs" / "arch-main-runner" / "package.mmd"


def layers() -> list[list[str]]:
    """The rooms of each layer, the uppermost first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rooms = next(contract for contract in contracts if contract["name"] == "rooms")
    return [[room.strip() for room in layer.split("|")] for layer in rooms["layers"]]


def package_diagram() -> str:
    """A box a layer; a room may import what lies in the boxes below its own."""
    found = layers()
    lines = ["%% Written by scripts/architecture.py from the layers in pyproject.toml.", "flowchart TB"]
    for number, rooms in enumerate(found):
        lines.append(f'    subgraph layer{number}[" "]')
        lines.append("        direction LR")
        lines.append("        " + " ~~~ ".join(f"{room}[hkbench.{room}]" for room in rooms))  # side by side
        lines.append("    end")
    lines += [f"    layer{number} --> layer{number + 1}" for number in range(len(found) - 1)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PACKAGE.write_text(package_diagram())
