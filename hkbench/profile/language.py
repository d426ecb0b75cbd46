"""What a candidate's kernels are written in, whatever was asked for: by what was seen running, and by its source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hkbench.profile.hipkittens import device_sources, kernel_language_apart
from hkbench.profile.names import Built, base, defined_kernels, device_functions, triton_functions
from hkbench.profile.ownership import kernel_owner, names_of, object_owner, plain_name, traced_rows
from hkbench.records import Backend, DeviceKind, KernelLanguage, Owner


def language_of_kernels(
    trace: Mapping[str, Any], source: str, built: Built, device: DeviceKind
) -> KernelLanguage | None:
    """Of a GPU candidate, by the kernels of its own in one traced call.

    HipKittens where one of them uses it; otherwise the language of the longest. None where none is the candidate's, or
    where its source, as it stands, does not define the longest one.
    """
    defined = defined_kernels(source)
    rows = sorted(traced_rows(trace) or (), key=lambda row: -row[2])
    own = [name for name, kind, _ in rows if kernel_owner(name, kind, defined, built) is Owner.CANDIDATE]
    if not own:
        return None
    compiled, triton = device_functions(source), triton_functions(source)
    if device is DeviceKind.ROCM:
        found = kernel_language_apart(device_sources(source), own)
        if found is not None and found.backend is Backend.HIPKITTENS:
            return found
        if names_of(own[0]) & compiled:
            return found
    longest = base(own[0])
    if names_of(own[0]) & triton:
        reason = f"{longest} is a Triton function of its source"
        return KernelLanguage(backend=Backend.TRITON, reason=reason, kernels=_those(own, triton), ran=True)
    if device is DeviceKind.CUDA and names_of(own[0]) & compiled:
        reason = f"{longest} is a __global__ function of its source"
        return KernelLanguage(backend=Backend.CUDA, reason=reason, kernels=_those(own, compiled), ran=True)
    return None


def language_of_objects(objects: Mapping[str, float], folder: str, built: Built) -> KernelLanguage | None:
    """Of a CPU candidate: C++ where samples of instruction pointers lie in a library that its build left in `folder`.

    `objects`: path of a mapped file -> samples.
    """
    inside = folder.rstrip("/") + "/"
    for path in sorted(objects, key=lambda path: -objects[path]):
        if path.startswith(inside) and object_owner(path, folder, built, aten_share=0.0) is Owner.CANDIDATE:
            name = plain_name(path.rpartition("/")[2].removesuffix(" (deleted)"))
            return KernelLanguage(backend=Backend.CPP, reason=f"native code of its {name} ran", ran=True)
    return None


def not_hipkittens(asked: Backend, found: KernelLanguage | None) -> str | None:
    """The warning for a candidate that was to be HipKittens and is not."""
    if asked is not Backend.HIPKITTENS or found is None or found.backend is Backend.HIPKITTENS:
        return None
    what = "plain HIP" if found.backend is Backend.HIP else found.backend.value
    return f"not HipKittens but {what}: {found.reason}"


def _those(kernels: list[str], defined: set[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(written for name in kernels for written in sorted(names_of(name) & defined)))
