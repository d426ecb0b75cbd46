"""`run_batch.py --display full`: the monitor's screen on the batch's own terminal.

The screen is a child process that reads the run folder, so that neither its work nor its end is the batch's: `q`, a
crash and `kill -9` of the screen leave the run at work, with plain lines from then on. Ctrl-C reaches the screen as a
key (the terminal is raw); it ends with a code of its own, and the batch interrupts itself. While the screen stands,
what the batch prints goes to batch_run.log.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import termios
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from rich.console import Console

from hkbench.errors import Unavailable, UsageError
from hkbench.monitor.progress import PlainDisplay
from hkbench.monitor.render import frame
from hkbench.monitor.state import RunState
from hkbench.records import AnyEvent, RunFacts
from hkbench.store.layout import RunPaths

_PACKAGE = Path(__file__).resolve().parents[2]
_INTERRUPT = 130  # attached.INTERRUPT; textual is not for this process
_SECONDS = 10.0  # for the screen to close
#: Before anything else the child leaves SIGINT to the batch: a Ctrl-C before its terminal is raw goes to both.
_CHILD = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "from hkbench.monitor.attached import main; raise SystemExit(main())"
)
#: What a screen that could not tidy up has left on: the other buffer, mouse, focus, paste and resize reports, keys.
_TIDY = (
    "\x1b[?1049l\x1b[?25h\x1b[?7h\x1b[0m"
    + "".join(f"\x1b[?{mode}l" for mode in (1000, 1003, 1004, 1006, 1015, 1016, 2004, 2048))
    + "\x1b[<u"
)


class FullDisplay:
    """The screen until it is closed, then plain lines; at the end the last frame stays on the terminal."""

    def __init__(
        self,
        stream: TextIO,
        folder: Path,
        state: RunState,
        name: str,
        facts: RunFacts | None,
        plain: PlainDisplay,
    ) -> None:
        """`plain` takes over where the screen is closed.

        `UsageError` without a terminal that is this process' own, `Unavailable` without textual."""
        _require_terminal(stream)
        self._stream, self._plain = stream, plain
        self._state, self._name, self._facts = state, name, facts
        self._lock = threading.Lock()
        self._open, self._closing = True, False
        stream.flush()
        self._modes = termios.tcgetattr(0)
        reader, self._lifeline = os.pipe()
        self._terminal = os.dup(stream.fileno())
        self._child = _start(folder, reader, self._terminal)
        os.close(reader)
        self._kept = _divert(RunPaths(folder).log)
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def on_event(self, event: AnyEvent) -> None:
        with self._lock:
            self._state.apply(event)
            if self._open:
                self._plain.count(event)
            else:
                self._plain.on_event(event)

    def close(self) -> None:
        """End the screen, and leave the last frame."""
        with self._lock:
            was_open, self._closing = self._open, True
        os.close(self._lifeline)
        self._watcher.join(_SECONDS)
        if self._watcher.is_alive():
            self._child.kill()
            self._watcher.join()
        os.close(self._terminal)
        if was_open:
            console = Console(file=self._stream)
            console.print(frame(self._state, self._name, time.time(), facts=self._facts, height=console.height))
        self._plain.close()

    def _watch(self) -> None:
        """Waits for the end of the screen, and puts the terminal in order."""
        code = self._child.wait()
        with self._lock:
            if code not in (0, _INTERRUPT):
                os.write(self._terminal, _TIDY.encode())
            with suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(0, termios.TCSADRAIN, self._modes)
            _restore(self._kept)
            self._open = False
            if self._closing:
                return
            if code == _INTERRUPT:
                os.kill(os.getpid(), signal.SIGINT)  # to the process, so that its main thread wakes up
                return
            how = "" if code == 0 else f" with exit code {code}"
            with suppress(OSError):
                self._stream.write(f"the screen was closed{how}; the run goes on, Ctrl-C ends it\n")
                self._stream.flush()


def _require_terminal(stream: TextIO) -> None:
    if not (stream.isatty() and os.isatty(0)):
        raise UsageError("--display full needs a terminal: choose plain or log, and look with monitor.py")
    if os.tcgetpgrp(stream.fileno()) != os.getpgrp():
        raise UsageError("--display full needs the terminal in the foreground: choose log, and look with monitor.py")
    if importlib.util.find_spec("textual") is None:
        raise Unavailable("--display full needs textual: run `make setup`, or choose --display rich")


def _start(folder: Path, lifeline: int, terminal: int) -> subprocess.Popen[bytes]:
    """The screen on `terminal`; textual draws on standard error."""
    search = os.pathsep.join([str(_PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _CHILD, str(folder.resolve()), str(lifeline)],
        stdin=0,
        stdout=terminal,
        stderr=terminal,
        pass_fds=(lifeline,),
        env=os.environ | {"PYTHONPATH": search},
    )


def _divert(log: Path) -> tuple[int, int]:
    """Standard output and standard error go to `log`; copies of what they were."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    return kept


def _restore(kept: tuple[int, int]) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    for target, copy in zip((1, 2), kept, strict=True):
        os.dup2(copy, target)
        os.close(copy)
