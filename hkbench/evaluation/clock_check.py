"""Check whether the evaluator's clock works on this GPU, by a baseline's call before the candidate has the device."""

from __future__ import annotations

from collections.abc import Callable

import torch

from hkbench.analysis import compare
from hkbench.analysis.reference import Leaves
from hkbench.errors import WorkerLost
from hkbench.evaluation.link import ProtocolError
from hkbench.evaluation.shared_memory import SharedMemory
from hkbench.evaluation.side import BaselineClient
from hkbench.protocol import messages


def broken_clock(
    memory: SharedMemory, baseline: BaselineClient, inputs: list[object], native: Callable[[list[object]], Leaves]
) -> str | None:
    """Return why the clock does not work; None where it does, and where there is none. `native`: eager's outputs.

    Raises:
        WorkerLost: as `BaselineClient.request`.
    """
    gated, reveal = memory.call(baseline, inputs, takes=True)
    if gated is None:
        return None
    try:
        answer = baseline.asked(messages.Call(), reveal, False, gated)
    except WorkerLost as error:
        if isinstance(error.__cause__, ProtocolError):
            return str(error.__cause__)
        raise
    if isinstance(answer, messages.Raised):
        return answer.message
    memory.baseline_regions.leave()
    if gated.lost is not None:
        return gated.lost
    if gated.changed is not None:
        return f"{gated.changed} of a call of the baseline changed after its stream was done"
    expected = native(inputs)
    for path, got in gated.outputs.items():
        wanted = expected[path]
        assert isinstance(wanted, torch.Tensor)
        found, _ = compare.compare_output(path, wanted, wanted, got)
        if (wrong := found.mismatch) is not None:
            place = f"{wrong.output}{list(wrong.index)}"
            return f"of a call of the baseline it took {wrong.got} for {place}, which is {wrong.expected}"
    return None
