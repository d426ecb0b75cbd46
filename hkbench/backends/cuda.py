"""CUDA C++, as an extension of PyTorch."""

from __future__ import annotations

from hkbench.backends.base import Backend, OwnCode
from hkbench.profile.kernel_owner import names_of, written_names
from hkbench.profile.names import base, device_functions
from hkbench.records import DeviceKind, KernelLanguage
from hkbench.toolchain.programs import find_extension_tools, require_nvcc


def _recognise(own: OwnCode) -> KernelLanguage | None:
    """Recognise CUDA where the longest kernel is a `__global__` function of the candidate's text."""
    functions = device_functions(own.source)
    if not own.kernels or not names_of(own.kernels[0]) & functions:
        return None
    reason = f"{base(own.kernels[0])} is a __global__ function of its source"
    return KernelLanguage(backend=CUDA.name, reason=reason, kernels=written_names(own.kernels, functions), ran=True)


CUDA = Backend(
    name="cuda",
    language="CUDA C++",
    devices=frozenset({DeviceKind.CUDA}),
    programming_model="threads",
    card="_backend_cuda.txt",
    find_tools=(find_extension_tools, require_nvcc),
    kernels_in=device_functions,
    recognise=_recognise,
)
