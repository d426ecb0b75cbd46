"""A judge that stays with a CPU as others stay with a GPU: what it is like between two evaluations is looked at too."""

from __future__ import annotations

import torch

from hkbench.judge import worker
from hkbench.judge.footprint import Footprint
from hkbench.judge.link import RunnerLink
from hkbench.judge.worker import serve as serve
from hkbench.records import DeviceFacts

_usually = worker._taken


def _taken(facts: DeviceFacts, baseline: RunnerLink) -> Footprint | None:
    _usually(facts, baseline)
    return Footprint.of(torch.device("cpu"))


worker._taken = _taken
