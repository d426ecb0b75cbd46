"""What builds of a run may share: PCHs, made beside the run when candidates could use them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from hkbench.engine.confinement import Cages
from hkbench.engine.slots import BuildSlots
from hkbench.errors import ToolchainUnavailable
from hkbench.fastbuild.hip_pch import HipPchCache
from hkbench.fastbuild.pch_cache import NotMade, PchCache
from hkbench.records import DeviceKind, EvaluationSettings, Isolation, Protection
from hkbench.toolchain.hip import find_hip


class Store(Protocol):
    """The PCHs of one compiler. A request is what a PCH is made for, of the store's own type."""

    store: Path

    @property
    def environment(self) -> dict[str, str]: ...
    @property
    def reads(self) -> tuple[Path, ...]: ...
    def requested(self, folder: Path) -> Sequence[Hashable]: ...
    def has(self, request: Any, /) -> bool: ...
    def new_folder(self) -> Path: ...
    def make(self, request: Any, prefix: Sequence[str], folder: Path, stop: threading.Event | None, /) -> None: ...


class PchBuilder:
    """PCHs for the builds of one run; none where candidates could write to them, or where there is no compiler.

    A PCH that `after` builds could have used is made for those after them, in the next build slot that is free: never
    while a CPU is measured. With 0 none is made, and builds use what there is.
    """

    def __init__(
        self,
        isolation: Isolation,
        cages: Cages,
        slots: BuildSlots,
        settings: EvaluationSettings,
        device: DeviceKind,
        environment: Mapping[str, str],
        after: int,
    ) -> None:
        """Take `environment`: what builds have in theirs that the engine has not."""
        self._cages = cages
        self._slots = slots
        self._waits = settings.prepare_builds
        self._after = 1 if self._waits else after
        self._asked: Counter[Hashable] = Counter()  # by how many builds each was
        self._stores: list[Store] = []
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}
        self._stop = threading.Event()
        if settings.stock_builds or Protection.FILES not in isolation.holds:
            return
        # A missing compiler is said where something is built with it.
        with suppress(ToolchainUnavailable, OSError):
            self._stores.append(PchCache(environment=environment))
        if device is DeviceKind.ROCM:
            with suppress(ToolchainUnavailable, OSError):
                self._stores.append(HipPchCache(find_hip(), environment=os.environ))

    def environment(self) -> dict[str, str]:
        """Return what a runner has to know."""
        return {name: value for store in self._stores for name, value in store.environment.items()}

    def readable(self) -> tuple[str, ...]:
        """Return what a runner has to see beyond the rest."""
        return tuple(str(store.store) for store in self._stores)

    def note(self, folder: Path) -> None:
        """Have the PCHs made that the builds in this private folder could have used."""
        for store in self._stores if self._after else ():
            for request in store.requested(folder):
                self._asked[request] += 1
                if self._asked[request] >= self._after and request not in self._tasks and not store.has(request):
                    self._tasks[request] = asyncio.create_task(self._make(store, request))

    async def _make(self, store: Store, request: Hashable) -> None:
        async with self._slots.build(first=True):
            folder = store.new_folder()
            try:
                await asyncio.to_thread(store.make, request, self._cages.tool(folder, *store.reads), folder, self._stop)
            except NotMade:
                return  # builds go on without it; it is not tried again in this run

    async def close(self) -> None:
        """Stop what is being made, unless the settings ask for it."""
        if not self._waits:
            self._stop.set()
            for task in self._tasks.values():
                task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
