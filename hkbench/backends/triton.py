"""Triton, which compiles a kernel when it is first launched."""

from __future__ import annotations

from hkbench.backends.base import Backend, CompileOnly, OwnCode
from hkbench.backends.targets import TritonTarget
from hkbench.device_kinds import Profiler
from hkbench.profile.kernel_owner import names_of, written_names
from hkbench.profile.names import base, triton_functions
from hkbench.records import DeviceKind, EvaluationSettings, KernelLanguage
from hkbench.toolchain.hip import ARCHITECTURES
from hkbench.toolchain.programs import require_triton
from hkbench.toolchain.triton import find_triton


def _recognise(own: OwnCode) -> KernelLanguage | None:
    """Recognise Triton where the longest kernel is one of its functions in the candidate's text."""
    functions = triton_functions(own.source)
    if not own.kernels or not names_of(own.kernels[0]) & functions:
        return None
    reason = f"{base(own.kernels[0])} is a Triton function of its source"
    return KernelLanguage(backend=TRITON.name, reason=reason, kernels=written_names(own.kernels, functions), ran=True)


async def _find_target(arch: str, _settings: EvaluationSettings) -> TritonTarget:
    return TritonTarget(TRITON.name, arch, find_triton())


TRITON = Backend(
    name="triton",
    language="Triton",
    devices=frozenset({DeviceKind.ROCM, DeviceKind.CUDA}),
    programming_model="blocks",
    card="_backend_triton.txt",
    find_tools=(require_triton,),
    compile_only=CompileOnly(ARCHITECTURES, find_triton, _find_target),
    kernels_in=triton_functions,
    recognise=_recognise,
    profiler=Profiler.PROTON,
)
