"""Name what can be plugged in and where it is, without importing it.

A backend is registered by one line here, or by an entry point of the group `hkbench.backends` in an installed package:
its name is the backend's, its value the place of the `Backend` object (`module:object`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from hkbench.errors import UsageError
from hkbench.records import BackendName, DeviceKind

BACKEND_GROUP = "hkbench.backends"


@dataclass(frozen=True)
class BackendEntry:
    """A registered backend."""

    name: str  #: in options and records: "hip"
    title: str  #: in reports and displays: "HIP"
    place: str  #: of its `hkbench.backends.Backend`: "module:object"
    default_on: DeviceKind | None = None  #: the kind of device on which it is used where no backend is named


#: The shipped ones. Where a kernel could be of several, the first that recognises it counts.
BACKENDS = (
    BackendEntry("hipkittens", "HipKittens", "hkbench.backends.hipkittens:HIPKITTENS", DeviceKind.ROCM),
    BackendEntry("hip", "HIP", "hkbench.backends.hip:HIP"),
    BackendEntry("cuda", "CUDA", "hkbench.backends.cuda:CUDA", DeviceKind.CUDA),
    BackendEntry("triton", "Triton", "hkbench.backends.triton:TRITON"),
    BackendEntry("cpp", "C++", "hkbench.backends.cpp:CPP", DeviceKind.CPU),
)


def backend_names() -> tuple[str, ...]:
    """Return the names of all backends, the shipped ones first."""
    return tuple(entry.name for entry in (*BACKENDS, *_installed()))


def backend_entry(name: str) -> BackendEntry:
    """Return the entry of a backend.

    Raises:
        UsageError: no backend of this name is registered.
    """
    found = _entry(name)
    if found is None:
        raise UsageError(f"there is no backend {name!r}; use one of {', '.join(backend_names())}")
    return found


def backend_title(name: str) -> str:
    """Return the title of a backend; its name where it is not registered here, as in the record of another machine."""
    found = _entry(name)
    return name if found is None else found.title


def default_backend(kind: DeviceKind) -> str:
    """Return the name of the backend that is used on a kind of device where none is named.

    Raises:
        UsageError: there is no such backend for this kind.
    """
    emulated = (DeviceKind.EMULATED_GFX942, DeviceKind.EMULATED_GFX950)
    meant = DeviceKind.ROCM if kind in emulated else kind
    found = next((entry.name for entry in BACKENDS if entry.default_on is meant), None)
    if found is None:
        raise UsageError(f"device {kind}: name a backend with --backend, one of {', '.join(backend_names())}")
    return found


def _known(name: str) -> str:
    if _entry(name) is None:
        known = {"name": name, "known": ", ".join(backend_names())}
        raise PydanticCustomError("backend", "no such backend; use one of {known}", known)
    return name


#: In files of settings: the name of a backend that is registered here.
KnownBackend = Annotated[BackendName, AfterValidator(_known)]


def _entry(name: str) -> BackendEntry | None:
    shipped = next((entry for entry in BACKENDS if entry.name == name), None)
    return shipped or next((entry for entry in _installed() if entry.name == name), None)


@cache
def _installed() -> tuple[BackendEntry, ...]:
    """Return the backends of installed packages, in the order of their names; a shipped name is not replaced."""
    shipped = {entry.name for entry in BACKENDS}
    found = {point.name: point.value for point in metadata.entry_points(group=BACKEND_GROUP)}
    return tuple(BackendEntry(name, name, found[name]) for name in sorted(found) if name not in shipped)
