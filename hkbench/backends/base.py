"""Describe a backend: the language that a candidate's kernels are written in, and all that depends on it.

A backend is added by one file that makes a `Backend` and one line in `hkbench/registry.py` (or an entry point).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Literal, Protocol

from hkbench.device_kinds import KINDS, Profiler, model_of
from hkbench.errors import InternalError, UsageError
from hkbench.records import DeviceFacts, DeviceKind, EvaluationSettings, KernelLanguage
from hkbench.registry import BACKENDS, backend_entry, backend_title
from hkbench.toolchain.programs import find_extension_tools


@dataclass(frozen=True)
class Provision:
    """What every verdict of a run says of what its backend was given beside the tools."""

    versions: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class OwnCode:
    """The code of a candidate's own that ran in a forward pass."""

    source: str  #: the candidate's file
    kernels: tuple[str, ...] = ()  #: names in the trace of a GPU, the longest first
    objects: tuple[str, ...] = ()  #: on a CPU, names of files that its build left, that with the most samples first


class Target(Protocol):
    """What --build-only compiles for, and with what; hkbench/backends/targets.py has the kinds that it knows."""

    def offered(self) -> AbstractContextManager[None]:
        """Return a context within which runners find what candidates build with."""

    def versions(self) -> dict[str, str]:
        """Return the versions that a verdict names."""


@dataclass(frozen=True)
class CompileOnly:
    """How candidates of a backend are compiled for GPUs that need not be there."""

    archs: tuple[str, ...]  #: the default first
    find_compiler: Callable[[], object]  #: raises ToolchainUnavailable where there is none
    #: (architecture, settings) -> what is compiled for. Raises UsageError, InputMissing or ToolchainUnavailable.
    find_target: Callable[[str, EvaluationSettings], Awaitable[Target]]


async def _provide_nothing(_device: DeviceFacts) -> Provision:
    return Provision()


@dataclass(frozen=True, eq=False)
class Backend:
    """A language of kernels, with what prompts, evaluation and compilation have to know of it."""

    name: str  #: as it is registered
    language: str  #: in a prompt's rules: "HIP C++"
    devices: frozenset[DeviceKind] | None  #: on which its candidates are measured; `None`: wherever the tensors are
    #: What a kernel's code is about: one thread of a GPU, a block of values, or loops of a CPU. Templates choose by it.
    programming_model: Literal["threads", "blocks", "loops"]
    card: str  #: prompt file that a template includes as `_backend.txt`
    partials: Mapping[str, str] = field(default_factory=dict)  #: prompt files that the folders of prompts lack -> text
    dialects: Mapping[str, str] = field(default_factory=dict)  #: architecture -> what templates see as `dialect`
    #: Each raises ToolchainUnavailable where programs or packages that build candidates are missing.
    find_tools: tuple[Callable[[], object], ...] = (find_extension_tools,)

    compile_only: CompileOnly | None = None  #: how --build-only compiles candidates for a GPU that need not be there

    #: Find what candidates for a device use beside the tools, once, before the first candidate.
    provide: Callable[[DeviceFacts], Awaitable[Provision]] = _provide_nothing
    #: Name the kernels that a candidate's text defines.
    kernels_in: Callable[[str], set[str]] = lambda _source: set()
    recognise: Callable[[OwnCode], KernelLanguage | None] = lambda _own: None  #: what is written in this backend
    #: Say what is wrong with a candidate for this backend whose kernels are in that language.
    language_warning: Callable[[KernelLanguage | None], str | None] = lambda _found: None
    profiler: Profiler | None = None  #: comes with its compiler, and is used where a GPU's maker's cannot be
    reads_amd_code: bool = False  #: what a candidate builds for an AMD GPU is read: registers, LDS, spills
    waits_by_counting: bool = False  #: kernels wait by counting memory operations, so that a spill makes results wrong

    @property
    def title(self) -> str:
        """The name in reports and displays."""
        return backend_title(self.name)

    @property
    def compiles_for(self) -> tuple[str, ...]:
        """The architectures for which --build-only compiles candidates, the default first."""
        return self.compile_only.archs if self.compile_only is not None else ()

    @property
    def builds_extensions(self) -> bool:
        """Whether candidates are built by the C++ compiler, as extensions of PyTorch."""
        return find_extension_tools in self.find_tools

    def dialect(self, arch: str | None) -> str | None:
        """Return the dialect of an architecture ("gfx942:sramecc+" counts as "gfx942"); `None` where there is none."""
        return self.dialects.get((arch or "").split(":")[0])

    def runs_on(self, kind: DeviceKind) -> bool:
        """Tell whether candidates are measured on devices of this kind."""
        return self.devices is None or any(model_of(kind).runs_what_is_for(one) for one in self.devices)

    def check_device(self, kind: DeviceKind, name: str) -> None:
        """Raise UsageError where candidates cannot be measured on a device of this kind, called `name`."""
        if self.runs_on(kind):
            return
        advice = "; name another backend with --backend, or another device with --device"
        if self.compiles_for:
            compiled = f"--backend {self.name} --arch {self.compiles_for[0]}"
            advice = f"; eval.py --build-only {compiled} compiles a candidate without one"
        gpus = frozenset(model.kind for model in KINDS if not model.on_host)
        labels = sorted(f"{model_of(one).label}s" for one in self.devices or ())
        whose = "GPUs" if self.devices == gpus else " and ".join(labels)
        raise UsageError(f"backend {self.name} is for {whose}, and this device is {name}{advice}")

    def check_tools(self) -> None:
        """Look for the programs and packages that build candidates.

        Raises:
            ToolchainUnavailable: one is missing; with where it comes from.
        """
        for find in self.find_tools:
            find()


@cache
def find_backend(name: str) -> Backend:
    """Import and return a backend.

    Raises:
        UsageError: no backend of this name is registered.
    """
    entry = backend_entry(name)
    module, _, attribute = entry.place.partition(":")
    found = getattr(import_module(module), attribute)
    if not isinstance(found, Backend) or found.name != name:
        raise InternalError(f"{entry.place} is registered as backend {name!r} and is not that: correct the entry")
    return found


def shipped_backends() -> tuple[Backend, ...]:
    """Import and return the backends that come with hkbench, in the order of the registry."""
    return tuple(find_backend(entry.name) for entry in BACKENDS)
