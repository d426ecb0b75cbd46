"""Start a command from a bare `python SCRIPT.py`: in the project's own environment where this one lacks something."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

NEEDED = ("pydantic", "torch", "openai", "rich", "jinja2", "markdown_it", "psutil", "tenacity", "numpy")
ROOT = Path(__file__).resolve().parents[1]
UNAVAILABLE = 69


def start(command: str) -> int:
    """Run one command; `python` may be any interpreter once `make setup` has made `.venv`."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if not missing:
        from hkbench.cli.main import door

        return door(command)
    python = ROOT / ".venv" / "bin" / "python"
    if python.exists() and Path(sys.prefix).resolve() != (ROOT / ".venv").resolve():
        os.execv(python, [str(python), *sys.argv])
    print(
        f"hkbench: this Python lacks {', '.join(missing)}; run `make setup` in {ROOT}, which makes .venv",
        file=sys.stderr,
    )
    return UNAVAILABLE
