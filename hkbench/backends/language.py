"""Tell what a candidate's kernels are written in, whatever was asked for: by what was seen running, and its source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hkbench.backends.base import Backend, OwnCode, find_backend, shipped_backends
from hkbench.profile.kernel_owner import kernel_owner
from hkbench.profile.names import Built
from hkbench.profile.ownership import object_owner, plain_name, traced_rows
from hkbench.records import BackendName, DeviceKind, KernelLanguage, Owner

shipped_backends()  # imported once: processes that measure are forked from one that has them


def defined_kernels(source: str, asked: BackendName) -> frozenset[str]:
    """Return the names of the kernels that a text defines, in the shipped backends and the one asked for."""
    finders = dict.fromkeys(backend.kernels_in for backend in _backends(asked))
    return frozenset(name for find in finders for name in find(source))


def language_of_kernels(
    trace: Mapping[str, Any], source: str, built: Built, device: DeviceKind, asked: BackendName
) -> KernelLanguage | None:
    """Return the language of a GPU candidate, by the kernels of its own in one traced call.

    `None` where no kernel is the candidate's, or where no backend of the device recognises them.
    """
    return _of_rows(traced_rows(trace) or (), source, built, device, asked)


def language_of_launches(
    kernels: Mapping[str, int], source: str, built: Built, device: DeviceKind, asked: BackendName
) -> KernelLanguage | None:
    """Return the language of a candidate on an emulated GPU, by the kernels that its device executed.

    `kernels`: name -> instructions.
    """
    rows = [(name, "kernel", float(instructions)) for name, instructions in kernels.items()]
    return _of_rows(rows, source, built, device, asked)


def language_of_objects(
    objects: Mapping[str, float], folder: str, source: str, built: Built, asked: BackendName
) -> KernelLanguage | None:
    """Return the language of a CPU candidate, by the files that its build left in `folder` whose code was sampled.

    `objects`: path of a mapped file -> samples.
    """
    inside = folder.rstrip("/") + "/"
    own = [
        path
        for path in sorted(objects, key=lambda path: -objects[path])
        if path.startswith(inside) and object_owner(path, folder, built) is Owner.CANDIDATE
    ]
    names = tuple(plain_name(path.rpartition("/")[2].removesuffix(" (deleted)")) for path in own)
    return _recognised(OwnCode(source, objects=names), DeviceKind.CPU, asked)


def _of_rows(
    rows: Iterable[tuple[str, str, float]], source: str, built: Built, device: DeviceKind, asked: BackendName
) -> KernelLanguage | None:
    defined = defined_kernels(source, asked)
    longest_first = sorted(rows, key=lambda row: -row[2])
    own = tuple(name for name, kind, _ in longest_first if kernel_owner(name, kind, defined, built) is Owner.CANDIDATE)
    return _recognised(OwnCode(source, kernels=own), device, asked) if own else None


def _recognised(own: OwnCode, device: DeviceKind, asked: BackendName) -> KernelLanguage | None:
    for recognise in dict.fromkeys(one.recognise for one in _backends(asked) if one.runs_on(device)):
        if (found := recognise(own)) is not None:
            return found
    return None


def _backends(asked: BackendName) -> tuple[Backend, ...]:
    """Return the backends in the order in which they are asked: one that was added knows its own code best."""
    shipped, own = shipped_backends(), find_backend(asked)
    return shipped if own in shipped else (own, *shipped)
