"""What a Triton candidate launches, compiled by its runner for a GPU that is not there.

Nothing of it is judged: the code objects go on to the engine as bytes that nobody trusts.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any

import torch

from hkbench.cdna import LDS_BYTES
from hkbench.devices.peaks import PARTS
from hkbench.errors import ProblemError
from hkbench.judge import failures
from hkbench.judge.arena import Layout
from hkbench.judge.job import EvaluateJob
from hkbench.judge.link import RunnerBabble, RunnerLink
from hkbench.judge.reference import Reference
from hkbench.records import FailureKind, Stage
from hkbench.runner.wire import Message

NOTHING_LAUNCHED = "forward launches no Triton kernel, so there is nothing to compile"
KERNELS_LIMIT = 256
TOTAL_LIMIT = 64 << 20  #: bytes of all code objects
SEED = 0  #: constructors draw parameters, which nobody sees
#: What Triton's own autotuner passes over where another configuration compiles.
_PASSED_OVER = "CompileTimeAssertionFailure"


def absent_gpu(arch: str) -> dict[str, Any]:
    """What the runner says of the GPU that it compiles for: the first listed part of the architecture."""
    part = next(part for part in PARTS if part.arch == arch)
    return {
        "name": f"AMD Instinct {part.name}",
        "arch": arch,
        "compute_units": part.compute_units,
        "memory": part.memory,
        "lds": LDS_BYTES[arch],
    }


def launched(link: RunnerLink, job: EvaluateJob, on_build: Callable[[], None]) -> dict[str, Any]:
    """`kernels`, as the runner describes them, each with its `image` in base64, and `notes` for the verdict.

    Raises:
        CandidateFailed: a kernel does not compile, or nothing was compiled.
        RunnerGone, RunnerTimeout, RunnerBabble: as a request does.
        ProblemError: the problem's own code fails.
    """
    settings = job.settings
    places = _places(job)
    answer = link.request("launch", settings.run_timeout, settings.build_timeout, on_build, None, seed=SEED, **places)
    if not answer["ok"]:
        raise failures.from_exception(Stage.LOAD, answer)
    kernels, refused, idle = (_listed(answer, name) for name in ("kernels", "refused", "idle"))
    raised = answer.get("raised")
    notes = _notes(kernels, refused, raised, answer.get("stage"))
    notes += [f"{str(name)[:100]} is not launched by forward, so it was not compiled" for name in idle]
    total = 0
    for number, kernel in enumerate(kernels):
        size = kernel.pop("bytes", None)
        total += size if isinstance(size, int) and size >= 0 else TOTAL_LIMIT + 1
        if total > TOTAL_LIMIT:
            raise RunnerBabble(f"code objects of more than {TOTAL_LIMIT >> 20} MiB")
        kernel["image"] = _image(link, number, size, settings.run_timeout)
    return {"kernels": kernels, "notes": notes}


def _places(job: EvaluateJob) -> dict[str, Any]:
    """Constructor arguments and inputs as the wire carries them; shapes suffice, so nothing is allocated."""
    meta = torch.device("meta")
    try:
        with torch.device(meta):
            reference = Reference(job.problem, job.sizes, meta, SEED)
        inputs = reference.inputs(SEED)
    except ProblemError:  # code that needs real numbers
        reference = Reference(job.problem, job.sizes, torch.device("cpu"), SEED)
        inputs = reference.inputs(SEED)
    layout = Layout()
    given = {"init_inputs": reference.init_inputs, "inputs": inputs}
    return {name: [layout.argument(value) for value in values] for name, values in given.items()}


def _listed(answer: Message, name: str) -> list[Any]:
    """A list of the answer's, whose items are of the one type that belongs there."""
    found = answer.get(name)
    kind = str if name == "idle" else dict
    if not isinstance(found, list) or len(found) > KERNELS_LIMIT or not all(isinstance(one, kind) for one in found):
        raise RunnerBabble(f"{name}: not a list, or one of more than {KERNELS_LIMIT}")
    return found


def _notes(kernels: list[Any], refused: list[Any], raised: object, stage: object) -> list[str]:
    """What to keep in mind of a forward pass that ended otherwise than by itself. Raises CandidateFailed."""
    loaded = [kernel for kernel in kernels if kernel.get("bytes")]
    told = [one for one in refused if raised is not None or not loaded or one.get("error") != _PASSED_OVER]
    if told:
        raise _does_not_compile(told[-1])
    if isinstance(raised, dict) and raised.get("error") == "triton.runtime.errors.OutOfResources":
        name = next((kernel.get("name") for kernel in reversed(kernels) if not kernel.get("bytes")), "a kernel")
        message = f"{name} compiles, but cannot be launched on this architecture: {raised.get('message')}"
        raise failures.failed(Stage.BUILD, FailureKind.BUILD_ERROR, message)
    if isinstance(raised, dict) and not loaded:
        raise failures.from_exception(Stage.LOAD if stage == "load" else Stage.RUN, raised)
    if not loaded:
        raise failures.failed(Stage.BUILD, FailureKind.BUILD_ERROR, NOTHING_LAUNCHED)
    notes = [f"a configuration of {one.get('name')} does not compile: {_last(one)}" for one in refused]
    if isinstance(raised, dict):
        ended = f"{str(raised.get('error')).removeprefix('builtins.')}: {str(raised.get('message'))[:300]}"
        notes.append(
            f"forward ended early, and what it would have launched next was not compiled: {ended} "
            "(tensors have no contents here)"
        )
    return notes


def _does_not_compile(refused: dict[str, Any]) -> failures.CandidateFailed:
    """Triton says where (`at 3:8:`, counted in the function), shows the function so far, and then what is wrong."""
    line = refused.get("line")
    place = f"line {line}" if isinstance(line, int) else str(refused.get("name"))
    return failures.failed(
        Stage.BUILD,
        FailureKind.BUILD_ERROR,
        f"{place}: error: {_last(refused)}",
        f"{refused.get('error')} in {refused.get('name')}\n{refused.get('message')}",
    )


def _last(refused: dict[str, Any]) -> str:
    return next((line.strip() for line in reversed(str(refused.get("message")).splitlines()) if line.strip()), "")[:300]


def _image(link: RunnerLink, number: int, size: int, seconds: float) -> str:
    """A code object, fetched in parts, as base64."""
    image = b""
    while len(image) < size:
        answer = link.request("part", seconds, number=number, offset=len(image))
        try:
            part = base64.b64decode(answer["part"], validate=True)
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            raise RunnerBabble("a part of a code object that is not base64") from error
        if not part:
            raise RunnerBabble("a code object that ends before its size")
        image += part
    return base64.b64encode(image[:size]).decode()
