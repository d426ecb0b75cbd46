"""A judge that stays with a CPU as others stay with a GPU: what it is like between two evaluations is looked at too."""

from __future__ import annotations

from hkbench.judge import worker
from hkbench.judge.worker import serve as serve

worker.stays = lambda facts: True
