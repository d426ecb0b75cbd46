"""kill -9 of the batch at random moments: nothing finished is lost, and nothing is asked twice."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
from support import doors

from hkbench.records import GenerationStarted, RunClosed, SampleKey, Status
from hkbench.store.layout import RunPaths
from hkbench.store.reader import read_run

ONE, TWO = "1_One", "2_Two"
KILLS = 3
#: From the first event on, in seconds; an undisturbed run takes about this long.
LATEST_KILL = 2.5


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, ...]:
    root = tmp_path_factory.mktemp("bench")
    problems, replies = root / "problems", root / "replies"
    for addend, name in enumerate((ONE, TWO), start=1):
        doors.problem(problems, name, addend)
        doors.reply(replies, name, 1, 1, doors.fenced(doors.wrong(addend)))
        doors.reply(replies, name, 1, 2, doors.fenced(doors.raising("no")))
        doors.reply(replies, name, 2, 1, doors.fenced(doors.fast(addend)))
        doors.reply(replies, name, 2, 2, doors.fenced(doors.slow(addend)))
    fixed = (1, 2, "--problems", problems, "--replay", replies, "--device", "cpu", "--attempts", 2)
    return (*fixed, *doors.QUICK)


def verdicts(results: Path) -> dict[SampleKey, tuple[Status, str | None]]:
    run = read_run(RunPaths(results))
    assert all(sample.status for problem in run.problems for sample in problem.samples)
    return {
        sample.key: (sample.status, sample.failure.kind if sample.failure else None)
        for problem in run.problems
        for sample in problem.samples
        if sample.status is not None
    }


def asked(results: Path) -> Counter[SampleKey]:
    return Counter(event.key for event in doors.events(results) if isinstance(event, GenerationStarted))


def answered(results: Path) -> set[SampleKey]:
    """The samples whose reply is on disk."""
    return {
        SampleKey(problem=path.parts[-4], attempt=int(path.parts[-3][8:]), sample=int(path.parts[-2][7:]))
        for path in results.glob("*/attempt_*/sample_*/response.txt")
    }


def kill_once(words: tuple[object, ...], results: Path, after: float) -> None:
    """Begins the batch, kills it `after` seconds from its first event, and waits for all it had started."""
    events = len(doors.events(results))
    process = doors.start("run_batch", *words, "--results", results)
    while len(doors.events(results)) == events and process.poll() is None:
        time.sleep(0.01)
    deadline = time.monotonic() + after
    family: set[psutil.Process] = set()
    while time.monotonic() < deadline and process.poll() is None:
        family.update(doors.family(process))
        time.sleep(0.02)
    if process.poll() is None:
        family.update(doors.family(process))
    process.kill()
    process.communicate()
    assert doors.outliving(family) == []


def test_killed_and_resumed(words: tuple[object, ...], tmp_path: Path) -> None:
    undisturbed, results = tmp_path / "undisturbed", tmp_path / "results"
    done = doors.call("run_batch", *words, "--results", undisturbed)
    assert done.returncode == 0, done.stderr

    seed = random.randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201 - pytest shows it when the test fails
    moments = random.Random(seed)
    for _ in range(KILLS):
        had, before = answered(results), asked(results)
        kill_once(words, results, moments.uniform(0.0, LATEST_KILL))
        now = asked(results)
        assert {key: now[key] for key in had} == {key: before[key] for key in had}
    had, before = answered(results), asked(results)
    done = doors.call("run_batch", *words, "--results", results)
    assert done.returncode == 0, done.stderr

    now = asked(results)
    assert {key: now[key] for key in had} == {key: before[key] for key in had}
    assert set(now) == set(asked(undisturbed))
    assert verdicts(results) == verdicts(undisturbed)
    last = doors.events(results)[-1]
    assert isinstance(last, RunClosed) and last.complete
    assert not list(results.rglob("*/**/.*.tmp"))
    for problem in (ONE, TWO):
        paths = RunPaths(results).problem(problem)
        assert paths.best_code.read_text() == doors.fast(int(problem[0]))


def test_killed_while_a_candidate_runs(words: tuple[object, ...], tmp_path: Path) -> None:
    """The candidate, its guard and its judge go with the batch; its verdict is reached by the resumed run."""
    replies, results = tmp_path / "replies", tmp_path / "results"
    asleep = "open('begun', 'w').close(); import time; time.sleep(100)"
    doors.reply(replies, ONE, 1, 1, doors.fenced(doors.candidate(asleep)))
    more = ("--replay", replies, "--limit", 1, "--attempts", 1, "--run-timeout", 2, "--results", results)
    process = doors.start("run_batch", *words, *more, env={"TMPDIR": str(tmp_path)})
    doors.wait_for_file(tmp_path, "begun", process)
    family = doors.family(process)
    process.kill()
    process.communicate()
    assert doors.outliving(family) == []
    assert not RunPaths(results).problem(ONE).sample(1, 1).result.exists()
    done = doors.call("run_batch", *words, *more)
    assert done.returncode == 0, done.stderr
    assert list(asked(results).values()) == [1]
    assert [kind for _, kind in verdicts(results).values()] == ["timeout"]
