"""run_batch.py --strategy agents as a user runs it, on recorded replies of coder and reasoners."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from support import doors

from hkbench.records import AdviceReceived, Decided, Role
from hkbench.store.layout import RunPaths

NAME = "1_Loop"


def answer(folder: Path, attempt: int, role: Role, call: int, text: str) -> None:
    path = folder / NAME / f"attempt_{attempt}" / f"{role}_{call}" / "response.txt"
    path.parent.mkdir(parents=True)
    path.write_text(text)


@pytest.mark.slow
def test_a_wrong_kernel_is_mended_and_a_slow_one_made_fast(tmp_path: Path) -> None:
    replies = tmp_path / "replies"
    wrong, slow = doors.wrong(1), doors.slow(1)
    doors.reply(replies, NAME, 1, 1, doors.fenced(wrong))
    patch = "".join(f"-{line}\n" for line in wrong.splitlines()) + "".join(f"+{line}\n" for line in slow.splitlines())
    said = {"diagnosis": "it compares", "constants": "", "diff": f"@@ -1 +1 @@\n{patch}", "hint": ""}
    answer(replies, 2, Role.CORRECTNESS_REASONER, 1, json.dumps(said))
    answer(replies, 3, Role.PERFORMANCE_REASONER, 1, "Less work.")
    answer(replies, 3, Role.PERFORMANCE_REASONER, 2, '{"bottleneck": "the loop", "change": "one pass"}')
    doors.reply(replies, NAME, 3, 1, doors.fenced(doors.fast(1)))
    doors.problem(tmp_path / "problems", NAME, 1)
    problem = tmp_path / "problems" / "level1" / f"{NAME}.py"
    results = tmp_path / "results"
    call = ("--problems", problem, "--results", results, "--device", "cpu", *doors.QUICK, "--strategy", "agents")
    done = doors.call("run_batch", *call, "--replay", replies)
    assert done.returncode == 0, done.stderr

    events = doors.events(results)
    ends = [event.choice for event in events if isinstance(event, Decided) and event.what == "end"]
    assert ends == ["target met"]
    branches = {event.choice for event in events if isinstance(event, Decided) and event.what == "branch"}
    assert {"wrong", "patch", "tuned", "missed", "speed_advice", "met"} <= branches
    paths = RunPaths(results)
    assert "one pass" in paths.problem(NAME).prompt(3).read_text()
    assert paths.problem(NAME).advice(3, 2, Role.PERFORMANCE_REASONER).advice.exists()
    rows = list(csv.DictReader(paths.usage.read_text().splitlines()))
    assert [row["role"] for row in rows] == ["coder", "correctness_reasoner", *["performance_reasoner"] * 2, "coder"]
    assert "Performance reasoner" in paths.report_text.read_text()

    before = len(events)
    again = doors.call("run_batch", *call, "--replay", replies)
    assert again.returncode == 0, again.stderr
    assert not [event for event in doors.events(results)[before:] if isinstance(event, AdviceReceived)]
    other = doors.call("run_batch", *call, "--replay", replies, "--target-roof", "0.7")
    assert other.returncode == 64 and "target_roof" in other.stderr


def test_its_options_are_its_own() -> None:
    for option in ("--max-tuning", "--target", "--target-roof"):
        done = doors.call("run_batch", "1", "1", option, "1")
        assert done.returncode == 64 and "belongs to --strategy agents" in done.stderr
    both = doors.call("run_batch", "1", "1", "--strategy", "agents", "--target", "2", "--target-roof", "0.5")
    assert both.returncode == 64 and "give one of them" in both.stderr
