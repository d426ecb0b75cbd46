"""Run folders and resuming as a user meets them: the scripts in a folder of their own, with recorded replies."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import doors
from support.model_server import ModelServer, Request, Scripted, prompt_of

from hkbench.records import GenerationStarted, ProblemClosed, RunClosed
from hkbench.store.layout import RunPaths
from hkbench.store.reader import read_run_file

Done = subprocess.CompletedProcess[str]
pytestmark = pytest.mark.slow
ONE, TWO = "1_Fast", "2_Lost"


@dataclass(frozen=True)
class Desk:
    """A working folder with two problems, and replies for two attempts of two samples."""

    root: Path

    @property
    def replies(self) -> Path:
        return self.root / "replies"

    def batch(self, *words: object) -> Done:
        fixed = ("--problems", "problems", "--replay", "replies", "--device", "cpu", *doors.QUICK)
        return self.run("run_batch", *words, *fixed)

    def run(self, script: str, *words: object) -> Done:
        return doors.call(script, *words, cwd=self.root)

    def runs(self) -> list[Path]:
        return sorted(path for path in (self.root / "results").iterdir() if path.is_dir() and not path.is_symlink())

    def latest(self) -> Path:
        return (self.root / "results" / "latest").resolve()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    for number, name in enumerate((ONE, TWO), start=1):
        doors.problem(tmp_path / "problems", name, number)
    replies = tmp_path / "replies"
    doors.reply(replies, ONE, 1, 1, doors.fenced(doors.wrong(1)))
    doors.reply(replies, ONE, 1, 2, doors.fenced(doors.fast(1)))
    for attempt in (1, 2):
        doors.reply(replies, TWO, attempt, 1, "I cannot do that.")
        doors.reply(replies, TWO, attempt, 2, doors.fenced(doors.raising(f"attempt {attempt}")))
    return Desk(tmp_path)


def asked(run: Path) -> list[str]:
    """Calls that were begun, in order."""
    found = [event.key for event in doors.events(run) if isinstance(event, GenerationStarted)]
    return [f"{key.problem[0]}.{key.attempt}.{key.sample}" for key in found]


def is_complete(run: Path) -> bool:
    last = doors.events(run)[-1]
    return isinstance(last, RunClosed) and last.complete


def test_one_range_after_the_other_and_every_reader_without_a_name(desk: Desk) -> None:
    """README's way: a batch, another range, the monitor, the report, without naming a folder."""
    first = desk.batch(1)
    assert first.returncode == 0, first.stderr
    assert "new: results/" in first.stderr
    second = desk.batch(2, 2, "--attempts", 1)
    assert second.returncode == 0, second.stderr
    runs = desk.runs()
    assert len(runs) == 2 and desk.latest() in runs
    assert read_run_file(RunPaths(desk.latest())).config.problems == (TWO,)
    assert (desk.root / "results" / "latest").readlink() == Path(desk.latest().name)
    monitor = desk.run("monitor", "--once")
    assert monitor.returncode == 0 and TWO in monitor.stdout and ONE not in monitor.stdout
    assert desk.latest().name in monitor.stderr
    table = desk.run("monitor", "--json", "results")
    assert len(table.stdout.splitlines()) == 2
    for words in ((), ("results",), ("results/latest",)):
        report = desk.run("generate_report", *words)
        assert report.returncode == 0, report.stderr
        assert str(Path("results") / desk.latest().name / "report.html") in report.stdout


def test_the_same_command_resumes_and_after_the_end_begins_another(desk: Desk) -> None:
    missing = desk.replies / TWO / "attempt_2" / "sample_2" / "response.txt"
    text = missing.read_text()
    missing.unlink()
    command = ("1-2", "--attempts", 2)
    assert desk.batch(*command, "--samples", 2).returncode == 66
    (run,) = desk.runs()
    calls = asked(run)
    plan = desk.batch(*command, "--samples", 2, "--dry-run")
    assert plan.returncode == 0, plan.stderr
    assert f"resumes results/{run.name}: 4 of up to 8 samples judged, 1 reply that" in plan.stdout
    missing.parent.mkdir(exist_ok=True)
    missing.write_text(text)
    done = desk.batch(*command, "--samples", 2)
    assert done.returncode == 0, done.stderr
    assert desk.runs() == [run] and is_complete(run)
    assert f"resumes results/{run.name}: 4 of up to 8 samples judged" in done.stderr
    assert asked(run) == [*calls, "2.2.2"]
    again = desk.batch(*command, "--samples", 2)
    assert again.returncode == 0 and len(desk.runs()) == 2
    assert f"results/{run.name}, is complete" in again.stderr


def test_resume_by_the_folder_alone(desk: Desk) -> None:
    missing = desk.replies / ONE / "attempt_1" / "sample_2" / "response.txt"
    text = missing.read_text()
    missing.unlink()
    assert desk.batch(1, "--results", "results/mine", "--samples", 2, "--rtol", "float32=1e-3").returncode == 66
    missing.parent.mkdir(exist_ok=True)
    missing.write_text(text)
    before = read_run_file(RunPaths(desk.root / "results" / "mine")).config
    done = desk.run("run_batch", "--resume", "results/latest")
    assert done.returncode == 0, done.stderr
    run = desk.root / "results" / "mine"
    assert is_complete(run) and asked(run) == ["1.1.1", "1.1.2", "1.1.2"]
    assert read_run_file(RunPaths(run)).config == before
    other = desk.run("run_batch", "--resume", "results/mine", "--trials", "3")
    assert other.returncode == 64
    assert "judge.trials 2 -> 3" in other.stderr and "--resume results/mine" in other.stderr
    fewer = desk.run("run_batch", "--resume", "results/mine", "--samples", "1")
    assert fewer.returncode == 64 and "samples 2 -> 1" in fewer.stderr


def test_problems_attempts_and_samples_are_added(desk: Desk) -> None:
    run = desk.root / "results" / "grows"
    first = desk.batch(1, "--results", "results/grows", "--samples", 1, "--attempts", 1)
    assert first.returncode == 0, first.stderr
    assert asked(run) == ["1.1.1"]
    problems = desk.run("run_batch", "--resume", "results/grows", "2")
    assert problems.returncode == 0, problems.stderr
    assert "problems: adds 2" in problems.stderr
    assert asked(run) == ["1.1.1", "2.1.1"]
    samples = desk.run("run_batch", "--resume", "results/grows", "--samples", "2")
    assert samples.returncode == 0, samples.stderr
    assert sorted(asked(run)[2:]) == ["1.1.2", "2.1.2"]  # every problem has as many samples of an attempt
    attempts = desk.run("run_batch", "--resume", "results/grows", "--attempts", "2")
    assert attempts.returncode == 0, attempts.stderr
    assert sorted(asked(run)[4:]) == ["2.2.1", "2.2.2"]  # the other one is solved, and its strategy has nothing to do
    closed = {event.problem: event.solved for event in doors.events(run) if isinstance(event, ProblemClosed)}
    assert closed == {ONE: True, TWO: False} and is_complete(run)
    left_out = desk.batch(2, "--results", "results/grows", "--samples", 2, "--attempts", 2)
    assert left_out.returncode == 64
    assert "problems: leaves out 1" in left_out.stderr


def test_samples_added_to_an_earlier_attempt_change_no_decision(desk: Desk) -> None:
    """The late sample of attempt 1 is the best, and attempt 2 stays what was made from the others."""
    run = RunPaths(desk.root / "results" / "late")
    shutil.rmtree(desk.replies / TWO)
    doors.reply(desk.replies, TWO, 1, 1, doors.fenced(doors.raising("early")))
    doors.reply(desk.replies, TWO, 2, 1, doors.fenced(doors.raising("later")))
    first = desk.batch(2, "--results", run.root, "--samples", 1, "--attempts", 2)
    assert first.returncode == 0, first.stderr
    prompt = run.problem(TWO).prompt(2).read_text()
    doors.reply(desk.replies, TWO, 1, 2, doors.fenced(doors.fast(2)))
    doors.reply(desk.replies, TWO, 2, 2, "No.")
    done = desk.run("run_batch", "--resume", run.root, "--samples", "2")
    assert done.returncode == 0, done.stderr
    assert run.problem(TWO).prompt(2).read_text() == prompt
    assert run.problem(TWO).best_code.read_text() == doors.fast(2)
    (*_, closed) = [event for event in doors.events(run.root) if isinstance(event, ProblemClosed)]
    assert closed.solved and closed.best is not None and (closed.best.attempt, closed.best.sample) == (1, 2)
    again = desk.run("run_batch", "--resume", run.root)
    assert again.returncode == 0, again.stderr
    assert sorted(asked(run.root)) == ["2.1.1", "2.1.2", "2.2.1", "2.2.2"]


def answers(left: list[int]) -> Callable[[Request], Scripted]:
    """Answers `left[0]` prompts, and fails from then on; a question that is not a prompt costs none of them."""
    lock = threading.Lock()

    def handler(request: Request) -> Scripted:
        if "ModelNew" not in prompt_of(request):
            return Scripted(text="ok")
        with lock:
            left[0] -= 1
            if left[0] < 0:
                return Scripted(status=500, body=b'{"error": {"message": "out of order"}}')
        return Scripted(text=doors.fenced(doors.fast(1)))

    return handler


def test_the_block_of_the_readme_after_the_demo_and_a_service_that_moved(desk: Desk) -> None:
    """`make demo` leaves results/demo; then a model's run is begun, cut short, and resumed at another address."""
    demo = desk.batch(1, "--results", "results/demo")
    assert demo.returncode == 0, demo.stderr

    def ask(server: ModelServer, *more: object) -> Done:
        words = ("1", "1", "--model", "lab/kernel", "--base-url", server.base_url, "--samples", "3", "--attempts", "1")
        fixed = ("--problems", "problems", "--device", "cpu", "--outage", "0", "--concurrency", "1", *doors.QUICK)
        env = {"LLM_GATEWAY_KEY": "sk-test-0123456789"}
        return doors.call("run_batch", *words, *fixed, *more, cwd=desk.root, env=env)

    with ModelServer(answers([1])) as server:
        first = ask(server)
        assert first.returncode == 69, first.stderr
        before = server.base_url
    run = desk.latest()
    assert run.name.endswith("_lab-kernel") and len(desk.runs()) == 2
    with ModelServer(answers([9])) as server:
        second = ask(server)
        assert second.returncode == 0, second.stderr
        now = server.base_url
    assert f"resumes results/{run.name}: 0 of up to 3 samples judged, 1 reply that" in second.stderr
    assert len(desk.runs()) == 2 and is_complete(run)
    assert before != now and read_run_file(RunPaths(run)).config.base_url == now
    monitor = desk.run("monitor", "--once")
    assert monitor.returncode == 0 and run.name in monitor.stderr
    report = desk.run("generate_report")
    assert report.returncode == 0 and f"results/{run.name}/report.html" in report.stdout
    assert "results/demo" in report.stderr
