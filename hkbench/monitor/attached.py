"""The monitor's screen on the terminal of the batch that it watches; a process of its own (see full.py)."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from hkbench.monitor.app import MonitorApp
from hkbench.monitor.live import Watch
from hkbench.store.layout import RunPaths

INTERRUPT = 130  #: exit code: Ctrl-C was pressed, which is for the batch


class AttachedApp(MonitorApp):
    """Ctrl-C ends the run, `q` only the screen; so does the end of the batch."""

    def __init__(self, folder: Path, lifeline: int) -> None:
        super().__init__([Watch(RunPaths(folder))])
        self._lifeline = lifeline

    def on_mount(self) -> None:
        super().on_mount()
        threading.Thread(target=self._until_the_batch_ends, daemon=True).start()

    def _until_the_batch_ends(self) -> None:
        os.read(self._lifeline, 1)  # nothing is ever written: the other end is closed, by whatever ends the batch
        self.call_from_thread(self.exit)

    def action_interrupt(self) -> None:
        self.exit(return_code=INTERRUPT)


def main() -> int:
    """Arguments: the run folder, and the file descriptor that is closed when the batch ends."""
    app = AttachedApp(Path(sys.argv[1]), int(sys.argv[2]))
    app.run()
    return app.return_code or 0
