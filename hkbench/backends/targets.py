"""What --build-only compiles for, and with what: by recorded builds (HIP), or by what a candidate launches (Triton)."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from hkbench.fastbuild.hip_builds import HipPchBuilder, hip_pch_builder
from hkbench.records import BackendName, EvaluationSettings
from hkbench.toolchain.hip import HipToolchain
from hkbench.toolchain.hipkittens import Checkout, Dialect
from hkbench.toolchain.triton import Triton


@dataclass(frozen=True)
class HipTarget:
    """Compile the builds that a candidate asks for when it is imported."""

    backend: BackendName
    arch: str
    toolchain: HipToolchain
    kittens: tuple[Checkout, Dialect] | None = None  #: the headers of HipKittens, for a backend that uses them
    pchs: HipPchBuilder | None = None  #: precompiled headers; `None`: builds go without
    making: asyncio.Lock = field(default_factory=asyncio.Lock)  #: one at a time makes PCHs

    def offered(self) -> AbstractContextManager[None]:
        """Return a context within which runners are told where HipKittens is."""
        return nullcontext() if self.kittens is None else self.kittens[0].offered(self.toolchain)

    def versions(self) -> dict[str, str]:
        """Return the versions that a verdict names."""
        versions = {"hip": self.toolchain.version, "compiler": self.toolchain.compiler}
        return versions if self.kittens is None else versions | self.kittens[0].versions(self.kittens[1])


@dataclass(frozen=True)
class TritonTarget:
    """Compile what a candidate launches on tensors without contents."""

    backend: BackendName
    arch: str
    triton: Triton

    def offered(self) -> AbstractContextManager[None]:
        """Return a context that changes nothing: Triton is installed where runners find it."""
        return nullcontext()

    def versions(self) -> dict[str, str]:
        """Return the versions that a verdict names."""
        return {"triton": self.triton.version}


def hip_target(
    backend: BackendName,
    arch: str,
    settings: EvaluationSettings,
    toolchain: HipToolchain,
    kittens: tuple[Checkout, Dialect] | None = None,
) -> HipTarget:
    """Return the target of a HIP compiler, with the precompiled headers that the settings allow."""
    return HipTarget(backend, arch, toolchain, kittens, None if settings.stock_builds else hip_pch_builder(toolchain))
