"""Verdicts without judging: on a reply that holds no candidate, and on code that has a verdict."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.run_folder import correct, incorrect
from support.small_problems import AFFINE, problem_file

from hkbench.lab.verdicts import holds_for_copies, no_code, repeated
from hkbench.records import (
    DeviceFacts,
    DeviceKind,
    FailureKind,
    Isolation,
    IsolationLevel,
    Protection,
    SampleKey,
    SizeSet,
    Stage,
    Status,
    Track,
)


def test_no_code_says_where_and_how_it_would_have_been_judged(tmp_path: Path) -> None:
    isolation = Isolation(level=IsolationLevel.LIMITS, layers=("guard",), holds=(Protection.LIMITS,))
    device = DeviceFacts(kind=DeviceKind.CPU, index=0, name="a processor", llc_bytes=1)
    evaluator: Any = SimpleNamespace(device=device, sizes=SizeSet.CPU, isolation=isolation, track=Track.ANY)
    prompter: Any = SimpleNamespace(backend="cpp")
    extraction: Any = SimpleNamespace(note=None)
    verdict = no_code(problem_file(tmp_path, AFFINE), extraction, prompter, evaluator)
    assert verdict.status is Status.INCORRECT
    assert verdict.failure is not None and verdict.failure.kind is FailureKind.NO_CODE
    assert (verdict.conditions.isolation, verdict.conditions.track) == (isolation, Track.ANY)
    assert verdict.conditions.candidate_sha256 is None


FIRST = SampleKey(problem="1_ReLU", attempt=1, sample=2)


def test_a_repeated_verdict_names_its_first_sample_and_took_no_work() -> None:
    verdict = correct("1_ReLU", 2.0)
    copy = repeated(verdict, FIRST)
    assert (copy.speedup, copy.copy_of, copy.stages) == (verdict.speedup, FIRST, ())
    assert len(copy.conditions.warnings) == len(verdict.conditions.warnings) + 1
    assert repeated(copy, FIRST.model_copy(update={"sample": 3})) == copy  # a copy stays that of the first


@pytest.mark.parametrize("kind", [FailureKind.TIMEOUT, FailureKind.OUT_OF_MEMORY, FailureKind.WRONG_VALUES])
def test_only_what_a_busy_machine_cannot_cause_holds_for_copies(kind: FailureKind) -> None:
    assert holds_for_copies(correct("1_ReLU", 2.0))
    certain = kind is FailureKind.WRONG_VALUES
    assert holds_for_copies(incorrect("1_ReLU", kind, Stage.RUN)) is certain
