"""A real terminal of 80 columns and 24 lines: a pane of tmux."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path


class Terminal:
    """A tmux server of its own, with one pane."""

    def __init__(self, folder: Path, *command: str) -> None:
        self._socket = folder / "s"
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", shlex.join(command) + "; cat")

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout

    def lines(self) -> list[str]:
        return self._tmux("capture-pane", "-p").splitlines()

    def modes(self) -> str:
        """Whether the other buffer, the mouse and the keypad's keys are on: "0 0 0" after a program that tidied up."""
        return self._tmux("display-message", "-p", "#{alternate_on} #{mouse_any_flag} #{keypad_flag}").strip()

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def sees(self, *texts: str) -> str:
        return self.wait(lambda screen: all(text in screen for text in texts), f"{texts}")

    def wait(self, condition: Callable[[str], bool], what: str) -> str:
        deadline = time.monotonic() + 60
        while True:
            screen = "\n".join(self.lines())
            if condition(screen):
                return screen
            assert time.monotonic() < deadline, f"{what} not seen within a minute; the terminal shows:\n{screen}"
            time.sleep(0.05)

    def close(self) -> None:
        self._tmux("kill-server")


@contextmanager
def terminal(command: Sequence[str], env: Mapping[str, str] | None = None) -> Iterator[Terminal]:
    """`command` in a terminal; it says ENDED WITH its exit code, and how the terminal is then."""
    settings = [f"{name}={value}" for name, value in {"LANG": "C.UTF-8", **(env or {})}.items()]
    shell = f"stty -a > {{modes}}; {shlex.join(command)}; echo ENDED WITH $?; stty -a | cmp - {{modes}} && echo SANE"
    with tempfile.TemporaryDirectory() as folder:  # a socket's path must be short
        modes = shlex.quote(str(Path(folder) / "modes"))
        pane = Terminal(Path(folder), "env", *settings, "sh", "-c", shell.format(modes=modes))
        try:
            yield pane
        finally:
            pane.close()
