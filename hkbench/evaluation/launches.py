"""What a Triton candidate launches, compiled by its runner for a GPU that is not there.

Nothing of it is judged: the code objects go on to the engine as bytes that nobody trusts.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence

import torch

from hkbench.analysis.reference import Reference
from hkbench.cdna import LDS_BYTES
from hkbench.devices.peaks import PARTS
from hkbench.errors import ProblemError
from hkbench.evaluation import failures
from hkbench.evaluation.arena import Layout
from hkbench.evaluation.frames import LaunchesCompiled
from hkbench.evaluation.job import EvaluateJob
from hkbench.evaluation.link import ProtocolError, RunnerLink, read_answer
from hkbench.protocol import messages
from hkbench.protocol.places import Argument
from hkbench.records import FailureKind, Stage

NOTHING_LAUNCHED = "forward launches no Triton kernel, so there is nothing to compile"
TOTAL_LIMIT = 64 << 20  #: bytes of all code objects
SEED = 0  #: constructors draw parameters, which nobody sees
#: What Triton's own autotuner passes over where another configuration compiles.
_PASSED_OVER = "CompileTimeAssertionFailure"


def absent_gpu(arch: str) -> messages.AbsentGpu:
    """Return what the runner says of the GPU that it compiles for: the first listed part of the architecture."""
    part = next(part for part in PARTS if part.arch == arch)
    return messages.AbsentGpu(
        name=f"AMD Instinct {part.name}",
        arch=arch,
        compute_units=part.compute_units,
        memory=part.memory,
        lds=LDS_BYTES[arch],
    )


def launched(link: RunnerLink, job: EvaluateJob, on_build: Callable[[], None]) -> LaunchesCompiled:
    """Return what a forward pass would launch, compiled.

    Raises:
        CandidateFailed: a kernel does not compile, or nothing was compiled.
        RunnerExited, RunnerTimeout, ProtocolError: as a request does.
        ProblemError: the problem's own code fails.
    """
    settings = job.settings
    launch = _launch(job)
    answer = read_answer(launch, link.request(launch, settings.run_timeout, settings.build_timeout, on_build))
    if isinstance(answer, messages.Raised):
        raise failures.from_exception(Stage.LOAD, answer)
    kernels = answer.kernels
    notes = _notes(kernels, answer.refused, answer.raised, answer.stage)
    notes += [f"{name[:100]} is not launched by forward, so it was not compiled" for name in answer.idle]
    total = 0
    for number, kernel in enumerate(kernels):
        size = kernel.pop("bytes", None)
        if not isinstance(size, int) or size < 0 or total + size > TOTAL_LIMIT:
            raise ProtocolError(f"code objects of more than {TOTAL_LIMIT >> 20} MiB")
        total += size
        kernel["image"] = _image(link, number, size, settings.run_timeout)
    return LaunchesCompiled(kernels=kernels, notes=notes)


def _launch(job: EvaluateJob) -> messages.Launch:
    try:
        init_inputs, inputs = shapes(job)
    except ProblemError:  # code that needs real numbers
        init_inputs, inputs = shapes(job, "cpu")
    return messages.Launch(seed=SEED, init_inputs=init_inputs, inputs=inputs)


def shapes(job: EvaluateJob, device: str = "meta") -> tuple[list[Argument], list[Argument]]:
    """Return constructor arguments and inputs. Of tensors the shapes suffice, so on `meta` nothing is allocated.

    Raises:
        ProblemError: the problem's own code fails there.
    """
    with torch.device(device):
        reference = Reference(job.problem, job.sizes, torch.device(device), SEED)
    inputs = reference.inputs(SEED)
    layout = Layout()
    init_inputs, inputs = ([layout.argument(value) for value in values] for values in (reference.init_inputs, inputs))
    return init_inputs, inputs


def _notes(
    kernels: Sequence[messages.Object], refused: Sequence[messages.Object], raised: messages.Raised | None, stage: str
) -> list[str]:
    """Return what to keep in mind of a forward pass that ended otherwise than by itself. Raises CandidateFailed."""
    loaded = [kernel for kernel in kernels if kernel.get("bytes")]
    told = [one for one in refused if raised is not None or not loaded or one.get("error") != _PASSED_OVER]
    if told:
        raise _does_not_compile(told[-1])
    if raised is not None and raised.error == "triton.runtime.errors.OutOfResources":
        name = next((kernel.get("name") for kernel in reversed(kernels) if not kernel.get("bytes")), "a kernel")
        message = f"{name} compiles, but cannot be launched on this architecture: {raised.message}"
        raise failures.failed(Stage.BUILD, FailureKind.BUILD_ERROR, message)
    if raised is not None and not loaded:
        raise failures.from_exception(Stage.LOAD if stage == "load" else Stage.RUN, raised)
    if not loaded:
        raise failures.failed(Stage.BUILD, FailureKind.BUILD_ERROR, NOTHING_LAUNCHED)
    notes = [f"a configuration of {one.get('name')} does not compile: {_last(one)}" for one in refused]
    if raised is not None:
        ended = f"{raised.error.removeprefix('builtins.')}: {raised.message[:300]}"
        notes.append(
            f"forward ended early, and what it would have launched next was not compiled: {ended} "
            "(tensors have no contents here)"
        )
    return notes


def _does_not_compile(refused: messages.Object) -> failures.CandidateFailed:
    """Read Triton's message: where (`at 3:8:`, counted in the function), the function so far, and what is wrong."""
    line = refused.get("line")
    place = f"line {line}" if isinstance(line, int) else str(refused.get("name"))
    return failures.failed(
        Stage.BUILD,
        FailureKind.BUILD_ERROR,
        f"{place}: error: {_last(refused)}",
        f"{refused.get('error')} in {refused.get('name')}\n{refused.get('message')}",
    )


def _last(refused: messages.Object) -> str:
    return next((line.strip() for line in reversed(str(refused.get("message")).splitlines()) if line.strip()), "")[:300]


def _image(link: RunnerLink, number: int, size: int, seconds: float) -> str:
    """Return a code object, fetched in parts, as base64."""
    image = b""
    while len(image) < size:
        wanted = messages.Part(number=number, offset=len(image))
        answer = read_answer(wanted, link.request(wanted, seconds))
        if isinstance(answer, messages.Raised):
            raise ProtocolError("a code object of which the runner has no part")
        try:
            part = base64.b64decode(answer.part, validate=True)
        except (ValueError, binascii.Error) as error:
            raise ProtocolError("a part of a code object that is not base64") from error
        if not part:
            raise ProtocolError("a code object that ends before its size")
        image += part
    return base64.b64encode(image[:size]).decode()
