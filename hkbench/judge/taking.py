"""On a CPU, outputs are read from the memory of the frozen runner, wherever they lie there.

The clock ends with the runner's answer, and the guard reads the memory once the runner's processes are stopped. So
there is nothing to hand over, and no time between the end of a call and its outputs in which work could be done.
"""

from __future__ import annotations

import secrets
from typing import Any

import torch

from hkbench.judge import failures
from hkbench.judge.arena import is_address
from hkbench.judge.link import Unreadable
from hkbench.judge.side import BaselineSide, Side
from hkbench.records import FailureKind, Stage
from hkbench.runner.memory import DTYPES, span
from hkbench.runner.wire import Message


def why_unreadable(baseline: BaselineSide) -> str | None:
    """Returns why the guard cannot read the memory of a runner on this machine, by the baseline's; None where it can.

    Raises:
        WorkerLost: as `BaselineSide.must`.
    """
    text = secrets.token_hex(16)
    told = baseline.must("here", None, text=text)
    try:
        found = baseline.read(told["process"], told["address"], len(text))
    except Unreadable as error:
        return f"no process may read another's memory here ({error}); kernel.yama.ptrace_scope says who may"
    return None if found == text.encode() else "other bytes were read than lie there"


def taken(side: Side, answer: Message, places: dict[str, Any], stage: Stage) -> dict[str, torch.Tensor]:
    """Reads the outputs of a call, whose form has been checked. `places`: of the reference's outputs, by path.

    Raises:
        CandidateFailed: an output does not lie where the runner says.
        RunnerGone, WorkerLost: see `RunnerLink.read`.
    """
    outputs = {}
    for item in answer["leaves"]:
        if item["path"] in places:
            dtype = DTYPES[places[item["path"]]["dtype"]]
            size = span(item["shape"], item["strides"]) * dtype.itemsize
            data = _read(side, item, size, stage)
            flat = torch.frombuffer(data, dtype=torch.uint8) if size else torch.empty(0, dtype=torch.uint8)
            outputs[item["path"]] = flat.view(dtype).as_strided(item["shape"], item["strides"])
    return outputs


def _read(side: Side, item: dict[str, Any], size: int, stage: Stage) -> bytearray:
    address = item.get("address")
    if not is_address(address):
        message = f"the runner did not say where {item['path']} lies"
        raise failures.failed(stage, FailureKind.PROTOCOL, message)
    try:
        return side.read(side.process, address, size) if size else bytearray()
    except Unreadable as error:
        message = f"{item['path']} does not lie where the runner said ({error})"
        raise failures.failed(stage, FailureKind.PROTOCOL, message) from error
