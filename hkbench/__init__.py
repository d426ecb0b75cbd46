"""hkbench measures how well language models write GPU kernels.

`load_run` and `load_runs` give a run's results as pandas tables (hkbench/frames.py); they are imported when they are
first used, since every command imports this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hkbench.frames import load_run, load_runs

__version__ = "0.1.0"
__all__ = ["__version__", "load_run", "load_runs"]


def __getattr__(name: str) -> Any:
    if name in ("load_run", "load_runs"):
        from hkbench import frames

        return getattr(frames, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
