"""The monitor's app without a terminal: keys are pressed, and its screen is read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot

from hkbench.monitor.app import MonitorApp
from hkbench.monitor.live import Watch
from hkbench.store.layout import RunPaths


class Seat:
    """The person in front of it."""

    def __init__(self, app: MonitorApp, pilot: Pilot[None]) -> None:
        self.app, self._pilot = app, pilot

    def screen(self) -> list[str]:
        strips = self.app.screen._compositor.render_strips()
        return [strip.text.rstrip() for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.screen())

    async def press(self, *keys: str) -> str:
        await self._pilot.press(*keys)
        await self._pilot.pause()
        return self.text

    async def look(self) -> str:
        self.app.look()
        await self._pilot.pause()
        return self.text

    async def sees(self, text: str) -> bool:
        """What slides in a moment later."""
        for _ in range(200):
            if text in self.text:
                return True
            await self._pilot.pause(0.05)
        return False

    async def looks_until(self, text: str) -> bool:
        """What another thread brings."""
        for _ in range(200):
            if text in await self.look():
                return True
            await self._pilot.pause(0.05)
        return False

    def rows(self) -> list[str]:
        """The names in the table, in order."""
        lines = self.screen()
        first = next(i for i, line in enumerate(lines) if line.startswith("  problem"))
        return [line[2:].split()[0] for line in lines[first + 1 : -2] if "_" in line]


@asynccontextmanager
async def seat(*folders: Path, size: tuple[int, int] = (80, 24), now: float = 0.0) -> AsyncIterator[Seat]:
    """The app on run folders, looking only when it is told to."""
    watches = [Watch(RunPaths(folder)) for folder in folders]
    app = MonitorApp(watches, refresh=3600, clock=lambda: now)
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        there = Seat(app, pilot)
        await there.look()
        yield there
