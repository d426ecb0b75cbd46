"""A judge that stays with a CPU as others stay with a GPU: what it is like between two evaluations is looked at too."""

from __future__ import annotations

import torch

from hkbench.judge import worker
from hkbench.judge.footprint import Footprint
from hkbench.judge.worker import serve as serve
from hkbench.records import DeviceFacts


def taken(facts: DeviceFacts) -> Footprint:
    return Footprint.of(torch.device("cpu"))


worker._taken = taken
