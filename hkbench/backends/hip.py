"""Plain HIP C++, as an extension of PyTorch."""

from __future__ import annotations

from hkbench.backends.base import Backend, CompileOnly, OwnCode
from hkbench.backends.targets import HipTarget, hip_target
from hkbench.profile.hipkittens import device_sources, kernel_language_apart
from hkbench.profile.kernel_owner import names_of
from hkbench.profile.names import device_functions
from hkbench.records import DeviceKind, EvaluationSettings, KernelLanguage
from hkbench.toolchain.hip import ARCHITECTURES, find_hip
from hkbench.toolchain.programs import find_extension_tools


def recognise_hip(own: OwnCode) -> KernelLanguage | None:
    """Recognise HipKittens if a kernel that ran uses it, else HIP if the longest is a `__global__` of the text."""
    if not own.kernels:
        return None
    found = kernel_language_apart(device_sources(own.source), own.kernels)
    if found is not None and found.backend != HIP.name:
        return found
    return found if names_of(own.kernels[0]) & device_functions(own.source) else None


async def _find_target(arch: str, settings: EvaluationSettings) -> HipTarget:
    return hip_target(HIP.name, arch, settings, find_hip())


HIP = Backend(
    name="hip",
    language="HIP C++",
    devices=frozenset({DeviceKind.ROCM}),
    programming_model="threads",
    card="_backend_hip.txt",
    find_tools=(find_extension_tools, find_hip),
    compile_only=CompileOnly(ARCHITECTURES, find_hip, _find_target),
    kernels_in=device_functions,
    recognise=recognise_hip,
    reads_amd_code=True,
)
