"""What builds of a run may share: kits of precompiled headers, made beside the run when candidates could use them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from hkbench.engine.confinement import Cages
from hkbench.engine.kits import Kits, NotMade, Wish, wishes
from hkbench.engine.slots import BuildSlots
from hkbench.errors import ToolchainUnavailable
from hkbench.records import Isolation, JudgeSettings, Protection
from hkbench.runner.builds import KITS, WISHES


class Preparation:
    """Kits for the builds of one run; none where candidates could write to them, or where there is no compiler.

    With `makes`, a kit that a candidate's build could have used is made for the candidates after it, in a build slot:
    never while a CPU is measured. Without it, builds use what there is.
    """

    def __init__(
        self, isolation: Isolation, cages: Cages, slots: BuildSlots, settings: JudgeSettings, makes: bool
    ) -> None:
        self._cages = cages
        self._slots = slots
        self._waits = settings.prepare_builds
        self._makes = makes or self._waits
        self._kits: Kits | None = None
        self._tasks: dict[Wish, asyncio.Task[None]] = {}
        self._stop = threading.Event()
        if not settings.stock_builds and Protection.FILES in isolation.holds:
            try:
                self._kits = Kits()
            except (ToolchainUnavailable, OSError):  # a missing compiler is said where something is built with it
                return

    def environment(self) -> dict[str, str]:
        """What a runner has to know."""
        return {} if self._kits is None else {KITS: str(self._kits.store)}

    def readable(self) -> tuple[str, ...]:
        """What a runner has to see beyond the rest."""
        return () if self._kits is None else (str(self._kits.store),)

    def note(self, folder: Path) -> None:
        """Has the kits made that the builds in this private folder could have used."""
        if self._kits is None or not self._makes:
            return
        for wish in wishes(folder / WISHES):
            if wish not in self._tasks and not self._kits.has(wish):
                self._tasks[wish] = asyncio.create_task(self._make(self._kits, wish))

    async def _make(self, kits: Kits, wish: Wish) -> None:
        async with self._slots.build():
            folder = kits.new_folder()
            try:
                await asyncio.to_thread(kits.make, wish, self._cages.tool(folder), folder, self._stop)
            except NotMade:
                return  # builds go on without it; it is not tried again in this run

    async def close(self) -> None:
        """Stops what is being made, unless the settings ask for it."""
        if not self._waits:
            self._stop.set()
            for task in self._tasks.values():
                task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
