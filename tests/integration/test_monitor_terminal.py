"""monitor.py in a real terminal of 80 columns and 24 lines."""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from support import doors
from support.run_folder import RunFolder, correct, incorrect, run_config
from support.terminal import Terminal, terminal

from hkbench.records import DevicePlace, Stage
from hkbench.store.find import point_latest

pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None,
    reason="NO TMUX: the monitor was not tried on a real terminal; install tmux to have it tested",
)


@contextmanager
def monitor(*arguments: object, env: Mapping[str, str] | None = None) -> Iterator[Terminal]:
    """monitor.py in a terminal; it says how it ended."""
    script = [sys.executable, str(doors.ROOT / "monitor.py"), "--refresh", "0.1", *map(str, arguments)]
    with terminal(script, env) as pane:
        yield pane


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that run_batch.py made: a wrong answer, then a slow and a fast one."""
    root = tmp_path_factory.mktemp("finished")
    doors.problem(root / "problems", "1_Mended", 1)
    for attempt, sample, code in ((1, 1, doors.wrong(1)), (2, 1, doors.fast(1))):
        doors.reply(root / "replies", "1_Mended", attempt, sample, doors.fenced(code))
    arguments = ("--problems", root / "problems", "--replay", root / "replies", "--results", root / "results")
    more = ("--device", "cpu", "--attempts", 2, "--samples", 1, *doors.QUICK)
    done = doors.call("run_batch", 1, 1, *arguments, *more)
    assert done.returncode == 0, done.stderr
    return root / "results"


def test_a_finished_run_by_its_keys(finished: Path, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("echo EDITED $(basename $1); read line\n")
    with monitor(finished, env={"VISUAL": f"sh {editor}"}) as pane:
        screen = pane.sees("hkbench results  finished", "solved 1/1", "1_Mended", "q Quit")
        assert len(screen.splitlines()) <= 24
        assert any(line.split()[:2] == [">", "1_Mended"] for line in screen.splitlines())
        pane.press("Enter")
        pane.sees("1.1*  × wrong_values", "2.1*  ", "speed-up", "trials     2 of 2 passed")
        pane.press("Up")
        pane.sees("failure   wrong_values in stage compare", "mismatch")
        pane.press("Down")
        pane.press("2")
        pane.sees("class ModelNew(nn.Module):")
        pane.press("y")
        pane.sees("Copied")
        pane.press("o")
        pane.sees("EDITED code.py")
        pane.press("Enter")

        def shows_the_diff(screen: str) -> bool:
            """The screen is back before its keys are."""
            pane.press("3")
            return "1.1 wrong_values -> 2.1" in screen and "+        return x * 2 + 1" in screen

        pane.wait(shows_the_diff, "the diff")
        pane.press("5")
        pane.sees("baseline: median", "candidate: median", "█")
        pane.press("8")
        pane.sees("1_Mended", "Write `ModelNew`")
        pane.press("Escape")
        pane.sees("order: plan")
        pane.press("?")
        pane.sees("list failure kinds with counts")
        pane.press("?")
        pane.sees("order: plan", "+ faster")
        pane.press("/")
        pane.sees("a regular expression; Enter keeps it")
        pane.press("-l", "Lost")
        pane.press("Enter")
        pane.sees("0 of 1 problem · order: plan · name: Lost")
        pane.press("q")
        pane.sees("ENDED WITH 0")


def test_json_of_two_folders_is_two_lines(finished: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy)
    done = doors.call("monitor", finished, copy, "--json")
    assert done.returncode == 0, done.stderr
    states = [json.loads(line) for line in done.stdout.splitlines()]
    assert [state["condition"] for state in states] == ["finished", "finished"]
    assert states[0]["problems"][0]["name"] == "1_Mended"


def test_a_folder_of_runs_is_a_table_of_them(tmp_path: Path) -> None:
    for name, problem in (("20260304-050607_small", "1_ReLU"), ("20260304-050708_large", "2_GELU")):
        run = RunFolder(tmp_path / "results" / name, run_config((problem,)))
        run.start()
        run.sample(problem, 1, 1, correct(problem, 2.0))
        run.close()
    point_latest(tmp_path / "results", tmp_path / "results" / "20260304-050708_large")
    with monitor(tmp_path / "results") as pane:
        screen = pane.sees("050607_small", "050708_large")
        assert "latest" not in screen
        pane.press("Enter")
        pane.sees("order: plan")
        pane.press("q")
        pane.sees("ENDED WITH 0")


def test_the_device_of_a_run_at_work_in_a_frame_and_as_json(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "results", run_config(("1_ReLU",)))
    run.start(host=platform.node(), devices=(DevicePlace(index=0, name="a CPU"),))
    run.entered(run.asked("1_ReLU", 1, 2), Stage.TIME, device=0)
    done = doors.call("monitor", run.root, "--once")
    assert re.search(
        r"^device 0     1_ReLU 1\.2 time .* · \d+ % busy, [\d.]+ of [\d.]+ GiB$", done.stdout, re.MULTILINE
    )
    state = json.loads(doors.call("monitor", run.root, "--json").stdout)
    (device,) = state["devices"]
    (sample,) = device["samples"]
    assert (sample["key"]["sample"], sample["stage"], state["devices_note"]) == (2, "time", None)
    assert 0 <= device["reading"]["utilisation"] <= 1 and device["reading"]["temperature"] is None


def test_a_run_from_nothing_to_its_end(tmp_path: Path) -> None:
    results = tmp_path / "results"
    with monitor(results) as pane:
        pane.sees("waiting for a run in")
        names = tuple(f"{i}_problem" for i in range(1, 41))
        run = RunFolder(results, run_config(names))
        run.start()
        run.begin(names[0])
        key = run.asked(names[0], 1, 1)
        screen = pane.sees("model calls  waiting for 1: 1_problem 1.1", "hkbench results  running")
        assert "waiting for a run" not in screen
        run.answered(key)
        run.judged(key, correct(names[0], 2.0))
        run.sample(names[0], 1, 2, incorrect(names[0]))
        run.end(names[0], solved=True)
        pane.sees("+×", "2.00x", "1/40 problems")
        run.close(complete=False, reason="\x1b[2J\x1b]0;owned\x07no more")
        screen = pane.sees("stopped: no more")
        assert screen.count("1/40 problems") == 1
        shutil.rmtree(results)
        pane.sees("waiting for a run in")
        pane.press("C-c")
        screen = pane.sees("ENDED WITH 0")
        assert "Traceback" not in screen


def test_a_batch_that_is_killed(tmp_path: Path) -> None:
    """Shown as killed, with the command that resumes it, and its clock stands; it goes on after a resume."""
    name = "1_Mended"
    doors.problem(tmp_path / "problems", name, 1)
    hung = doors.candidate("while True: pass")
    for attempt, code in ((1, hung), (2, doors.fast(1))):
        doors.reply(tmp_path / "replies", name, attempt, 1, doors.fenced(code))
    results = tmp_path / "results"
    command = doors.command(
        "run_batch", 1, 1, "--problems", tmp_path / "problems", "--replay", tmp_path / "replies", "--results", results,
        "--device", "cpu", "--attempts", 2, "--samples", 1, *doors.QUICK,
    )  # fmt: skip
    with monitor(results) as pane:
        batch = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=doors.environment())
        pane.sees("hkbench results  running", "evaluating   1: 1_Mended 1.1 run")
        batch.kill()
        batch.wait()
        screen = pane.sees("hkbench results  killed at ", "resume with  python run_batch.py --resume ")
        assert "left" not in screen and "evaluating" not in screen
        pane.press("Enter")
        pane.sees("1.1   ▫ reply on disk")
        found = json.loads(doors.call("monitor", results, "--json").stdout)
        elapsed = found["elapsed"]
        assert found["condition"] == "killed" and found["left"] is None and found["under_way"] == []
        assert found["resume"] == f"python run_batch.py --resume {results}"
        assert json.loads(doors.call("monitor", results, "--json").stdout)["elapsed"] == elapsed
        done = subprocess.run(command, capture_output=True, env=doors.environment(), check=False, timeout=300)
        assert done.returncode == 0
        pane.press("Escape")
        pane.sees("hkbench results  finished", "solved 1/1")  # faster, or unsettled beside the monitor
