"""The live view in a real terminal of 80 columns and 24 lines."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.run_folder import RunFolder, correct, incorrect, run_config

import hkbench

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None,
    reason="NO TMUX: the live view was not tried on a real terminal; install tmux to have it tested",
)

VIEWER = """
import sys
from pathlib import Path
from hkbench.monitor import run_monitor
from hkbench.store.layout import RunPaths
run_monitor(RunPaths(Path(sys.argv[1])), refresh=0.1)
print("THE VIEW ENDED")
"""


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

    def press(self, key: str) -> None:
        self._tmux("send-keys", key)

    def wait(self, condition: Callable[[str], bool]) -> str:
        deadline = time.monotonic() + 60
        while True:
            text = "\n".join(self.lines())
            if condition(text):
                return text
            assert time.monotonic() < deadline, f"not seen within a minute; the terminal shows:\n{text}"
            time.sleep(0.05)

    def close(self) -> None:
        self._tmux("kill-server")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def terminal(results: Path) -> Iterator[Terminal]:
    root = Path(hkbench.__file__).parents[1]
    command = ("env", f"PYTHONPATH={root}", "LANG=C.UTF-8", sys.executable, "-c", VIEWER, str(results))
    with tempfile.TemporaryDirectory() as folder:  # a socket's path must be short
        pane = Terminal(Path(folder), *command)
        yield pane
        pane.close()


def test_the_view_follows_a_run_from_nothing_to_its_end(results: Path, terminal: Terminal) -> None:
    terminal.wait(lambda text: "waiting for a run in" in text)
    names = tuple(f"{i}_problem" for i in range(1, 41))
    run = RunFolder(results, run_config(names))
    run.start()
    run.begin(names[0])
    key = run.asked(names[0], 1, 1)
    text = terminal.wait(lambda text: "1: 1_problem 1.1" in text)
    assert "waiting" not in text
    assert text.splitlines()[0].startswith("hkbench results  running")
    assert "more problems" in text
    assert "F fast" in text.splitlines()[-1] or "F fast" in text.splitlines()[-2]
    run.answered(key)
    run.judged(key, correct(names[0], 2.0))
    run.sample(names[0], 1, 2, incorrect(names[0]))
    run.end(names[0], solved=True)
    terminal.wait(lambda text: "Fx" in text and "2.00x" in text)
    run.close(complete=False, reason="\x1b[2J\x1b]0;owned\x07no more")
    text = terminal.wait(lambda text: "THE VIEW ENDED" in text)
    assert "stopped: no more" in text
    assert text.count("1/40 finished") == 1  # the frame was redrawn in place, not scrolled


def test_ctrl_c_ends_the_view(results: Path, terminal: Terminal) -> None:
    RunFolder(results).start()
    terminal.wait(lambda text: "hkbench results  running" in text)
    terminal.press("C-c")
    text = terminal.wait(lambda text: "THE VIEW ENDED" in text)
    assert "Traceback" not in text
