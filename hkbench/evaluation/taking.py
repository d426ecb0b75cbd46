"""On a CPU, outputs are read from the memory of the frozen runner, wherever they lie there.

The clock ends with the runner's answer, and the guard reads the memory once the runner's processes are stopped. So
there is nothing to hand over, and no time between the end of a call and its outputs in which work could be done.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import torch

from hkbench.evaluation import failures
from hkbench.evaluation.arena import is_address
from hkbench.evaluation.form import Leaf
from hkbench.evaluation.link import Unreadable
from hkbench.evaluation.side import BaselineClient, RunnerClient
from hkbench.evaluation.stopwatch import NotTaken
from hkbench.protocol import messages
from hkbench.protocol.memory import DTYPES, span
from hkbench.protocol.places import Place
from hkbench.records import FailureKind, Stage


def why_unreadable(baseline: BaselineClient) -> str | None:
    """Return why the guard cannot read a runner's memory on this machine, tried on the baseline's; None if it can.

    Raises:
        WorkerLost: as `BaselineClient.request`.
    """
    text = secrets.token_hex(16)
    told = baseline.request(messages.Here(text=text))
    try:
        found = baseline.read(told.process, told.address, len(text))
    except Unreadable as error:
        return f"no process may read another's memory here ({error}); kernel.yama.ptrace_scope says who may"
    return None if found == text.encode() else "other bytes were read than lie there"


def taken(
    side: RunnerClient, leaves: Sequence[Leaf], places: dict[str, Place], stage: Stage
) -> dict[str, torch.Tensor]:
    """Read the outputs of a call.

    `places`: of the reference's outputs, by path.

    Raises:
        CandidateFailed: an output does not lie where the runner says.
        RunnerExited, WorkerLost: see `RunnerLink.read`.
    """
    outputs = {}
    for leaf in leaves:
        if leaf.path in places:
            try:
                outputs[leaf.path] = read_output(side, leaf.path, places[leaf.path], leaf.address, leaf.strides)
            except NotTaken as error:
                raise failures.failed(stage, FailureKind.PROTOCOL, str(error)) from error
    return outputs


def read_output(side: RunnerClient, path: str, place: Place, address: object, strides: Sequence[int]) -> torch.Tensor:
    """Read one output of the form of its `place` from where the runner says that it lies.

    Raises:
        NotTaken: it does not lie there.
        RunnerExited, WorkerLost: see `RunnerLink.read`.
    """
    if not is_address(address):
        raise NotTaken(f"the runner did not say where {path} lies")
    dtype = DTYPES[place.dtype]
    size = span(place.shape, strides) * dtype.itemsize
    try:
        data = side.read(side.process, address, size) if size else bytearray()
    except Unreadable as error:
        raise NotTaken(f"{path} does not lie where the runner said ({error})") from error
    flat = torch.frombuffer(data, dtype=torch.uint8) if size else torch.empty(0, dtype=torch.uint8)
    return flat.view(dtype).as_strided(place.shape, strides)
