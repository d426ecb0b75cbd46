"""What an evaluator is asked, for tests of parts that read little of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.run_folder import ISOLATED

from hkbench.evaluation.job import EvaluateJob
from hkbench.records import DeviceKind, EvaluationSettings, Problem, SizeSet

PROBLEM = Problem(number=1, name="1_A", level=1, path=Path("1_A"), source="", sha256="0" * 64)


def evaluate_job(**fields: Any) -> EvaluateJob:
    """Return a job for a kernel in CUDA, of files that are not there, but for these fields."""
    usual: dict[str, Any] = {
        "problem": PROBLEM,
        "code": "code.py",
        "folder": "/nowhere",
        "backend": "cuda",
        "device": DeviceKind.CUDA,
        "sizes": SizeSet.FULL,
        "settings": EvaluationSettings(),
        "isolation": ISOLATED,
    }
    return EvaluateJob(**usual | fields)
