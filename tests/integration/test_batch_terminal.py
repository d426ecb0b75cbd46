"""run_batch.py and eval.py in a real terminal."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import psutil
import pytest
from support import doors
from support.terminal import terminal

from hkbench.records import EvaluationFailed, RunClosed, RunStopping
from hkbench.store.layout import RunPaths

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None,
    reason="NO TMUX: a batch was not tried on a real terminal; install tmux to have it tested",
)
NAME = "1_One"


def batch(folder: Path, *replies: str) -> list[str]:
    """The command of a batch on one problem, each reply recorded for an attempt of its own."""
    doors.problem(folder / "problems", NAME, 1)
    for attempt, code in enumerate(replies, start=1):
        doors.reply(folder / "replies", NAME, attempt, 1, doors.fenced(code))
    words = ("--problems", folder / "problems", "--replay", folder / "replies", "--results", folder / "results")
    more = ("--device", "cpu", "--samples", 1, "--attempts", len(replies), *doors.QUICK, "--run-timeout", 60)
    return [sys.executable, str(doors.ROOT / "run_batch.py"), "1", "1", *map(str, (*words, *more))]


def process_of(results: Path) -> psutil.Process:
    """The batch itself, by its command line."""
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if str(results) in words and words[0] == sys.executable:
            return process
    raise AssertionError(f"no process has {results} on its command line")


def until(paths: RunPaths, text: str) -> None:
    deadline = time.monotonic() + doors.LIMIT
    while not (paths.journal.exists() and text in paths.journal.read_text()):
        assert time.monotonic() < deadline, f"{text} never came"
        time.sleep(0.05)


@pytest.mark.slow
def test_a_closed_terminal_ends_the_run_as_sigterm_does(tmp_path: Path) -> None:
    results, sleeper = tmp_path / "results", doors.candidate("return __import__('time').sleep(50) or x")
    paths = RunPaths(results)
    with terminal(batch(tmp_path, sleeper)):
        until(paths, '"run"')
        process = process_of(results)
        family = [process, *process.children(recursive=True)]
    assert doors.outliving(family, patience=60.0) == []  # the end of `with` kills tmux, and the terminal with it
    events = doors.events(results)
    assert isinstance(events[-1], RunClosed)
    assert (events[-1].complete, events[-1].reason) == (False, "interrupted")
    assert [event.reason for event in events if isinstance(event, RunStopping)] == ["interrupted"]
    assert not any(isinstance(event, EvaluationFailed) for event in events)
    assert paths.report_text.exists()
    assert "Traceback" not in paths.log.read_text()


@pytest.mark.slow
def test_a_bar_while_it_runs_and_the_result_at_its_end(tmp_path: Path) -> None:
    with terminal(batch(tmp_path, doors.fast(1))) as pane:
        pane.sees(" %  0/1 problem", "elapsed")
        screen = pane.sees("ENDED WITH 0")
    assert "100 %  1/1 problem" in screen
    assert "result: Faster than PyTorch on " in screen and "solved: 1 of 1 problem" in screen  # or unsettled
    assert "best: 1_One " in screen


def test_eval_says_what_it_is_doing_and_leaves_the_verdict_alone(tmp_path: Path) -> None:
    code = tmp_path / "code.py"
    code.write_text(doors.fast(1))
    problem = doors.problem(tmp_path / "problems", NAME, 1)
    words = ("--code", code, "--problem", problem, "--device", "cpu", *doors.QUICK)
    with terminal([sys.executable, str(doors.ROOT / "eval.py"), *map(str, words)]) as pane:
        pane.sees("start the device")
        screen = pane.sees("ENDED WITH 0")
    assert "correct, at least as fast" in screen
    assert "start the device" not in screen and "compare: trial" not in screen
