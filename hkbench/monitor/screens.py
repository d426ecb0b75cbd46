"""What the app asks of a screen that shows a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.screen import Screen

if TYPE_CHECKING:
    from hkbench.monitor.app import MonitorApp


class RunScreen(Screen[None]):
    """A screen that is told of what happens in the run."""

    def follow(self, changed: set[str] | None) -> None:
        """Show the present state; `changed` names the problems that changed, `None` is another run (or none)."""
        raise NotImplementedError

    @property
    def has_widgets(self) -> bool:
        """Whether there is something to draw on: not at the moment when it is made, nor while the app ends."""
        return self.is_running and bool(self.children)

    @property
    def monitor(self) -> MonitorApp:
        return cast("MonitorApp", self.app)

    def on_screen_resume(self) -> None:
        """Catch up with what happened while another screen lay above."""
        if self.is_mounted:
            self.follow(None)
