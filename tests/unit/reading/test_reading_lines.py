"""The line that a refusal points to."""

from __future__ import annotations

import pytest

from hkbench.reading import RULES, placed, read_apart
from hkbench.reading.lines import _RULES, SourceLines, lines_of
from hkbench.records import Failure, FailureKind, Stage, Track

SOURCE = """import threading
import torch
from torch import nn

class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(n))
        self.more = nn.Parameter(torch.ones(n))
        self.turned = self.gain.detach().clone()
        self.out = None

    def forward(self, x, y):
        if self.out is None:
            self.out = torch.empty_like(x)
        self.gain.data[0] = 1.0
        y.add_(1)
        threading.Thread(target=print).start()
        torch.matmul(x, y, out=self.out)
        return self.out
"""


def line(kind: FailureKind, message: str = "", detail: str | None = None) -> int | None:
    read = read_apart(SOURCE.encode(), "cpp", Track.OWN)
    failure = Failure(stage=Stage.RUN, kind=kind, message=message, detail=detail)
    return placed(failure, read.lines, read.findings).line


@pytest.mark.parametrize(
    ("kind", "message", "expected"),
    [
        (FailureKind.ALIASED_OUTPUT, "output lies in the memory of the result before it", "return self.out"),
        (FailureKind.ALIASED_OUTPUT, "output lies in the memory of an input", "y.add_(1)"),
        (FailureKind.INPUT_MODIFIED, "forward changed its input 1 in place", "y.add_(1)"),
        (FailureKind.INPUT_MODIFIED, "forward changed its input 0 in place", None),
        (FailureKind.STATE_MODIFIED, "forward changed gain, which", "self.gain.data[0]"),
        (FailureKind.WRONG_PARAMETERS, "it has a parameter more of shape [3]", "self.more ="),
        (FailureKind.WRONG_PARAMETERS, "it lacks bias of shape [3]", "def __init__"),
        (FailureKind.STALE_PARAMETERS, "the answer is right for the values before", "self.turned ="),
        (FailureKind.WRONG_SHAPE, "", "return self.out"),
        (FailureKind.NOT_OWN, "", "torch.matmul"),
        (FailureKind.SUSPECT, "", "threading.Thread"),
        (FailureKind.DEVICE_ERROR, "", None),
    ],
)
def test_by_the_text(kind: FailureKind, message: str, expected: str | None) -> None:
    found = line(kind, message)
    assert (None if found is None else SOURCE.splitlines()[found - 1].strip()[: len(expected or "")]) == expected


def test_by_the_traceback() -> None:
    trace = 'File "code.py", line 17, in forward\n  File "/x/torch/a.py", line 3\n  File "code.py", line 20, in f'
    assert line(FailureKind.RUNTIME_ERROR, "boom", trace) == 20


@pytest.mark.parametrize("source", ["", "def (", "class Model: pass", "class ModelNew: pass", "\0"])
def test_text_that_has_none_of_it(source: str) -> None:
    assert lines_of(source).returned is None


def test_only_rules_that_exist_point_to_lines() -> None:
    assert {rule for rules in _RULES.values() for rule in rules} <= set(RULES)
    assert lines_of(SOURCE) == SourceLines.model_validate_json(lines_of(SOURCE).model_dump_json())
