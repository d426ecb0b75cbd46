"""run_batch.py --display full in a real terminal: the screen is closed, killed, interrupted, or stays to the end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import psutil
import pytest
from support import doors
from support.terminal import Terminal, terminal

from hkbench.records import RunClosed
from hkbench.store.events import read_events

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("tmux") is None,
        reason="NO TMUX: the batch's screen was not tried on a real terminal; install tmux to have it tested",
    ),
]

NAME = "1_Mended"
TITLE = f"> {NAME}"  # the cursor of the screen's table


class Run:
    """A batch of one problem that takes a while: its first answer hangs for eight seconds."""

    def __init__(self, root: Path) -> None:
        self.results = root / "results"
        doors.problem(root / "problems", NAME, 1)
        hung = doors.candidate("while True: pass")
        for attempt, code in ((1, hung), (2, doors.fast(1))):
            doors.reply(root / "replies", NAME, attempt, 1, doors.fenced(code))
        self.command = doors.command(
            "run_batch", 1, 1, "--problems", root / "problems", "--replay", root / "replies", "--results",
            self.results, "--device", "cpu", "--attempts", 2, "--samples", 1, *doors.QUICK, "--display", "full",
        )  # fmt: skip

    def complete(self) -> bool:
        last = list(read_events(self.results / "journal.jsonl"))[-1]
        return isinstance(last, RunClosed) and last.complete


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def screen_of(run: Run) -> psutil.Process:
    """The child that draws."""
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if str(run.results) in command and any("hkbench.monitor.attached" in part for part in command):
            return process
    raise AssertionError("there is no screen")


def ends(pane: Terminal, code: int) -> str:
    text = pane.sees(f"ENDED WITH {code}", "SANE")
    assert "Traceback" not in text
    assert pane.modes() == "0 0 0"
    return text


def test_it_is_closed_and_the_run_goes_on_in_lines(run: Run) -> None:
    with terminal(run.command) as pane:
        pane.sees(f"hkbench {run.results.name}  running", TITLE, "1_Mended 1.1 run", "device 0")
        pane.press("Enter")
        pane.sees(f"{NAME}  open", "1.1   ▶ run")
        pane.press("Escape")
        pane.sees(TITLE)
        pane.press("q")
        pane.sees("the screen was closed; the run goes on, Ctrl-C ends it", f"{NAME} attempt 1 sample 1: wrong")
        text = ends(pane, 0)
    assert f"{NAME}: solved" in text and "report: " in text
    assert run.complete()


def test_it_stays_to_the_end_and_leaves_the_last_frame(run: Run) -> None:
    with terminal(run.command) as pane:
        pane.sees(TITLE)
        text = ends(pane, 0)
    assert "hkbench" in text and "finished" in text and "report: " in text and TITLE not in text
    assert f"{NAME} attempt 2 sample 1: faster" in (run.results / "batch_run.log").read_text()


def test_ctrl_c_ends_the_run(run: Run) -> None:
    with terminal(run.command) as pane:
        pane.sees(TITLE, "1_Mended 1.1 run")
        pane.press("C-c")
        ends(pane, 130)
    assert not run.complete()


def test_a_screen_that_is_killed_leaves_a_terminal_and_a_run(run: Run) -> None:
    with terminal(run.command) as pane:
        pane.sees(TITLE)
        screen_of(run).kill()
        pane.sees("the screen was closed with exit code -9; the run goes on")
        ends(pane, 0)
    assert run.complete()


def test_a_batch_that_is_killed_takes_its_screen_along(run: Run) -> None:
    with terminal(run.command) as pane:
        pane.sees(TITLE)
        screen = screen_of(run)
        batch = screen.parent()
        assert batch is not None
        os.kill(batch.pid, signal.SIGKILL)
        psutil.wait_procs([screen], timeout=60)
        assert not screen.is_running()
        # The shell goes on at once: what it says may stand in the screen's buffer, which is left after that.
        pane.wait(lambda shown: TITLE not in shown, f"no {TITLE}")
        assert pane.modes() == "0 0 0"


def test_without_a_terminal_it_is_refused(run: Run) -> None:
    done = subprocess.run(
        run.command, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL,
        env=doors.environment(),
    )  # fmt: skip
    assert done.returncode == 64
    assert "--display full needs a terminal" in done.stderr
