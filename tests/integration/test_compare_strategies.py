"""scripts/compare_strategies.py as a user runs it: all strategies, equal calls, two small problems.

Within this process, and so are the commands that it starts; `test_contradictions_run_nothing` has it as a process.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from support import doors

from hkbench.records import AdviceReceived, ReplyReceived
from hkbench.strategies import STRATEGIES
from scripts import compare_strategies

pytestmark = pytest.mark.slow
NAMES = ("1_One", "2_Two")


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    for addend, name in enumerate(NAMES, start=1):
        doors.problem(tmp_path / "problems", name, addend)
    return tmp_path


def words(bench: Path, *arguments: object) -> list[str]:
    quick = [word for word in doors.QUICK if word not in ("--track", "any")]
    chosen = ["1", "2", "--problems", bench / "problems", "--results", bench / "compared", *arguments]
    return [*map(str, chosen), "--", "--device", "cpu", *quick]


def run(bench: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The script to its end; its commands' output is in its own."""

    def command(started: Sequence[str], *, check: bool) -> subprocess.CompletedProcess[str]:
        python, script, *given = started
        assert python == sys.executable and Path(script).parent == doors.ROOT and not check
        done = doors.call(Path(script).stem, *given)
        sys.stdout.write(done.stdout)
        sys.stderr.write(done.stderr)
        return done

    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(compare_strategies, "subprocess", SimpleNamespace(run=command)),
        mock.patch.object(sys, "argv", [compare_strategies.__file__, *words(bench, *arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = compare_strategies.main()
    return subprocess.CompletedProcess([], code, out.getvalue(), err.getvalue())


def calls(bench: Path, strategy: str) -> tuple[int, int]:
    """Of the model that writes kernels and of those that read them, in all."""
    events = doors.events(bench / "compared" / strategy)
    return sum(isinstance(e, ReplyReceived) for e in events), sum(isinstance(e, AdviceReceived) for e in events)


def row(output: str, strategy: str) -> list[str]:
    """What the table at the end says of a strategy."""
    rows = [line.split() for line in output.splitlines() if line.startswith(f"{strategy}  ")]
    (cells,) = (cells[1:] for cells in rows if len(cells) == 8)
    return cells


def test_made_replies_at_equal_calls(bench: Path) -> None:
    done = run(bench, "--calls", 5, "--attempts", "agents=2", "--made")
    assert done.returncode == 0, done.stdout + done.stderr
    assert calls(bench, "reflect") == (10, 0), "two problems, five attempts, whatever came of them"
    assert calls(bench, "judge") == (4, 2), "a seed and one round; three calls more were for answers to put right"
    coder, reader = calls(bench, "staged")
    assert 2 * 2 <= coder <= 2 * 5 and reader == 0
    coder, reader = calls(bench, "graph")
    assert 2 * 3 < coder <= 2 * 5 and reader == 0, "a sample of attempt 1 is right, and the search goes on from it"
    assert calls(bench, "agents") == (4, 2), "its second attempt was advised on"
    rows = {name: row(done.stdout, name) for name in STRATEGIES}
    assert rows["reflect"][:4] == ["1x5", "10", "0", "5"]
    assert rows["judge"][:4] == ["1x2", "4", "2", "3"]
    assert all(cells[-1] == "2" for cells in rows.values())
    assert "no result" in done.stdout.splitlines()[-1]
    page = json.loads((bench / "compared" / "comparison.json").read_text())
    assert [Path(one["folder"]).name for one in page["runs"]] == list(STRATEGIES)


def test_a_strategy_that_lacks_replies_is_named(bench: Path) -> None:
    for addend, name in enumerate(NAMES, start=1):
        doors.reply(bench / "few", name, 1, 1, doors.fenced(doors.fast(addend)))
    doors.reply(bench / "few", NAMES[0], 2, 1, doors.fenced(doors.fast(1)))
    done = run(bench, "--calls", 4, "--strategies", "judge", "--replay", f"judge={bench / 'few'}")
    assert done.returncode == 1, done.stdout + done.stderr
    said = f"judge: {bench / 'few'} lacks 1 replies that {NAMES[0]} asks for: attempt_2/judge_1"
    assert done.stdout.count(said) == 2
    assert "asks for: attempt_2/sample_1, attempt_2/judge_1" in done.stdout
    assert "judge is not complete" in done.stdout
    assert row(done.stdout, "judge")[4] == "0"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--calls", 3, "--made"), "judge may take 4"),
        (("--calls", 5, "--strategies", "reflect", "--attempts", "agents=2"), "agents is none of reflect"),
        (("--calls", 4, "--strategies", "reflect", "--samples", "judge=2"), "--samples judge=...: judge is none of"),
        (("--calls", 4, "--strategies", "reflect", "--replay", "judge=x"), "judge is none of reflect"),
        (("--calls", 4, "--made", "--replay", "x"), "not allowed with"),
        (("--calls", 5, "--replay", "x", "y"), "one folder for all"),
    ],
)
def test_contradictions_run_nothing(bench: Path, arguments: tuple[object, ...], said: str) -> None:
    command = [sys.executable, compare_strategies.__file__, *words(bench, *arguments)]
    done = subprocess.run(
        command, env=doors.environment(), capture_output=True, text=True, timeout=doors.LIMIT, check=False
    )
    assert done.returncode != 0 and said in done.stderr
    assert not (bench / "compared").exists()
