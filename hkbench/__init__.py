"""hkbench measures how well language models write GPU kernels.

`evaluate` evaluates one candidate, `run` runs a batch (hkbench/api.py), `load_run` and `load_runs` give the results of
runs as pandas tables (hkbench/frames.py). They are imported when they are first used, since every command imports this
package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hkbench.api import EvaluationSettings, Problem, RunConfig, Verdict, evaluate, run
    from hkbench.frames import load_run, load_runs

__version__ = "0.1.0"
__all__ = [
    "__version__",
    "evaluate",
    "run",
    "load_run",
    "load_runs",
    "EvaluationSettings",
    "Problem",
    "RunConfig",
    "Verdict",
]


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("hkbench.frames" if name.startswith("load_") else "hkbench.api"), name)
