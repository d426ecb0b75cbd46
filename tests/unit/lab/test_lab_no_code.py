"""The verdict on a reply that holds no candidate."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from support.small_problems import AFFINE, problem_file

from hkbench.lab.lab import no_code
from hkbench.records import (
    Backend,
    DeviceFacts,
    DeviceKind,
    FailureKind,
    Isolation,
    IsolationLevel,
    Protection,
    SizeSet,
    Status,
    Track,
)


def test_it_says_where_and_how_it_would_have_been_judged(tmp_path: Path) -> None:
    isolation = Isolation(level=IsolationLevel.LIMITS, layers=("guard",), holds=(Protection.LIMITS,))
    device = DeviceFacts(kind=DeviceKind.CPU, index=0, name="a processor", llc_bytes=1)
    evaluator: Any = SimpleNamespace(device=device, sizes=SizeSet.CPU, isolation=isolation, track=Track.ANY)
    prompter: Any = SimpleNamespace(backend=Backend.CPP)
    extraction: Any = SimpleNamespace(note=None)
    verdict = no_code(problem_file(tmp_path, AFFINE), extraction, prompter, evaluator)
    assert verdict.status is Status.INCORRECT
    assert verdict.failure is not None and verdict.failure.kind is FailureKind.NO_CODE
    assert (verdict.conditions.isolation, verdict.conditions.track) == (isolation, Track.ANY)
    assert verdict.conditions.candidate_sha256 is None
