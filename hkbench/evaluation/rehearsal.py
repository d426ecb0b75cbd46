"""What a candidate builds in its constructor or its first call, built before it has the device.

Whether a candidate is rehearsed goes by its text and by what its import has built. That is a question of throughput
alone: what is not rehearsed, or not reached, is built while it has the device.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import torch

from hkbench.device_kinds import model_of
from hkbench.errors import ProblemError
from hkbench.evaluation.job import EvaluateJob
from hkbench.evaluation.launches import shapes
from hkbench.evaluation.link import RunnerLink
from hkbench.protocol import messages

#: That a forward pass on tensors without contents may take beside its builds; most take a tenth of a second. It is
#: less than any sensible limit of an import, so that it ends by itself.
SECONDS = 20.0
SHARE = 0.5  #: of the limit of an import, where that is short

_EXTENSION = re.compile(r"\b(?:load|load_inline|build)\s*\(")
_TRITON = re.compile(r"\btriton\b")
_COMPILE = re.compile(r"\btorch\s*\.\s*compile\b|\btorch\s+import\b.*\bcompile\b")
#: What `torch.compile` imports when it is called: seconds, which are better spent before.
_COMPILER = ("torch._dynamo", "torch._inductor.compile_fx", "torch._inductor.runtime.triton_heuristics")


def rehearse(link: RunnerLink, job: EvaluateJob, text: str, on_build: Callable[[], None]) -> None:
    """Have compiled what the candidate compiles when it is first used, unless nothing in its `text` looks like it.

    Raises:
        RunnerExited, RunnerTimeout, ProtocolError: as a request does.
    """
    modules = compilers(text)
    if not modules and len(_EXTENSION.findall(text)) <= link.builds:
        return
    try:
        init_inputs, inputs = shapes(job)
    except ProblemError:  # its code needs real numbers
        return
    settings = job.settings
    request = messages.Rehearse(
        device=model_of(job.device).candidates_device(0),
        gpu=job.gpu,
        threads=torch.get_num_threads(),
        modules=modules,
        init_inputs=init_inputs,
        inputs=inputs,
        seconds=min(SECONDS, SHARE * settings.load_timeout),
    )
    link.request(request, settings.load_timeout, settings.build_timeout, on_build)


def compilers(text: str) -> list[str]:
    """Return the modules of the compilers that work in a process of the candidate's, by its text."""
    modules = ["triton"] if _TRITON.search(text) else []
    return modules + (["triton", *_COMPILER] if _COMPILE.search(text) else [])
