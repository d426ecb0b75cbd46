"""Whether the judge's clock on a GPU works here, by a call of the baseline's before the candidate has the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from hkbench.errors import WorkerLost
from hkbench.judge import compare
from hkbench.judge.link import RunnerBabble
from hkbench.judge.reference import Leaves
from hkbench.judge.shared_memory import SharedMemory
from hkbench.judge.side import BaselineSide


def broken_clock(
    memory: SharedMemory, baseline: BaselineSide, inputs: list[Any], native: Callable[[list[Any]], Leaves]
) -> str | None:
    """Why the clock does not work; None where it does, and where there is none. `native`: eager's outputs.

    Raises:
        WorkerLost: as `BaselineSide.must`.
    """
    gated = memory.gated(baseline, inputs, takes=True)
    if gated is None:
        return None
    try:
        answer = baseline.asked("call", memory.baseline_regions.clear, False, gated)
    except WorkerLost as error:
        if isinstance(error.__cause__, RunnerBabble):
            return str(error.__cause__)
        raise
    if not answer["ok"]:
        return str(answer.get("message"))
    memory.baseline_regions.leave()
    expected = native(inputs)
    for path, got in gated.outputs.items():
        wanted = expected[path]
        assert isinstance(wanted, torch.Tensor)
        found, _ = compare.compare_output(path, wanted, wanted, got)
        if (wrong := found.mismatch) is not None:
            place = f"{wrong.output}{list(wrong.index)}"
            return f"of a call of the baseline it took {wrong.got} for {place}, which is {wrong.expected}"
    return None
