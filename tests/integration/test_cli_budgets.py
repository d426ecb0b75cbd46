"""Prices, budgets and signals of run_batch.py, as processes with a real HTTP server on this machine."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support import doors
from support.model_server import USAGE, ModelServer, Request, Scripted, prompt_of

from hkbench.records import EvaluationFailed, GenerationFailed, GenerationStarted, RunClosed, RunStopping
from hkbench.store.layout import RunPaths

ONE, TWO = "1_One", "2_Two"
#: One reply costs (8 * 10000 + 3 * 5000 + 29 * 20000) / 1000000.
PRICES = """currency = "XTS"

[models."test-*"]
input = 10000
cached_input = 5000
output = 20000.0
"""
COST, TOKENS = 0.675, USAGE["input"] + USAGE["output"]


def addend(request: Request) -> int:
    found = re.search(r"y = x \* 2 \+ (\d)", prompt_of(request))
    assert found is not None
    return int(found[1])


def wrong(request: Request) -> Scripted:
    """Never right, so that every attempt is used."""
    return Scripted(text=doors.fenced(doors.wrong(addend(request))))


@dataclass(frozen=True)
class Bench:
    problems: Path
    prices: Path
    results: Path

    def words(self, server: ModelServer, *more: object) -> tuple[object, ...]:
        fixed = (1, 2, "--problems", self.problems, "--results", self.results, "--device", "cpu", *doors.QUICK)
        model = ("--model", "test-model", "--base-url", server.base_url, "--concurrency", 1)
        return (*fixed, *model, "--samples", 2, "--attempts", 2, *more)

    def run(self, server: ModelServer, *more: object) -> subprocess.CompletedProcess[str]:
        return doors.call("run_batch", *self.words(server, *more), env={"OPENAI_API_KEY": "sk-test-0123456789"})

    def start(self, server: ModelServer, *more: object) -> subprocess.Popen[str]:
        return doors.start("run_batch", *self.words(server, *more), env={"OPENAI_API_KEY": "sk-test-0123456789"})

    @property
    def paths(self) -> RunPaths:
        return RunPaths(self.results)

    def report(self) -> Any:
        return json.loads(self.paths.report_json.read_text())

    def asked(self) -> Counter[int]:
        """How often samples were asked for: {1: 8} where eight were, each once."""
        keys = Counter(event.key for event in doors.events(self.results) if isinstance(event, GenerationStarted))
        return Counter(keys.values())

    def judged(self) -> int:
        return len(list(self.results.glob("*/attempt_*/sample_*/result.json")))

    def closed(self) -> RunClosed:
        last = doors.events(self.results)[-1]
        assert isinstance(last, RunClosed)
        return last


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    problems, prices = tmp_path / "problems", tmp_path / "prices.toml"
    for number, name in enumerate((ONE, TWO), start=1):
        doors.problem(problems, name, number)
    prices.write_text(PRICES)
    return Bench(problems, prices, tmp_path / "results")


def test_money_is_shown_and_ends_the_run(bench: Bench) -> None:
    """What was answered is judged; a larger budget resumes, and asks for nothing twice."""
    with ModelServer(wrong) as server:
        first = bench.run(server, "--prices", bench.prices, "--max-cost", 2)
        assert first.returncode == 75, first.stderr
        assert server.count == 3
        assert bench.asked() == {1: 3} and bench.judged() == 3
        assert "--max-cost 2 is used up: the run has spent 2.02 XTS, 120 tokens and " in first.stderr
        assert "the same command with a larger --max-cost resumes" in first.stderr
        assert "spent: 33 input and 87 output tokens, cost 2.02 XTS" in first.stdout
        assert not bench.closed().complete and "--max-cost" in str(bench.closed().reason)
        report = bench.report()
        assert report["overall"]["cost"] == {"total": 2.025, "currency": "XTS", "unpriced_replies": 0}
        assert report["overall"]["machine_failures"] == []
        assert "--max-cost 2 is used up" in report["incomplete_because"]
        assert [problem["state"] for problem in report["problems"]] == ["unfinished", "not_started"]
        shown = json.loads(doors.call("monitor", bench.results, "--json").stdout)
        assert (shown["cost"], shown["currency"], shown["condition"]) == (2.025, "XTS", "stopped")

        bench.prices.write_text(PRICES.replace("20000.0", "40000.0"))
        again = bench.run(server, "--prices", bench.prices, "--max-cost", 2)
        assert again.returncode == 75, again.stderr
        assert server.count == 3, "it was spent before"
        # without a price file the folder's price holds, the last one that was given
        second = bench.run(server, "--max-cost", 100)
        assert second.returncode == 0, second.stderr
        assert server.count == 8 and bench.asked() == {1: 8} and bench.judged() == 8
    report = bench.report()
    dearer = COST + USAGE["output"] * 20000 / 1e6
    assert report["facts"]["price"]["rates"]["output"] == 40000
    assert report["overall"]["cost"]["total"] == pytest.approx(8 * dearer)
    assert report["overall"]["cost_per_solved"] is None  # none is solved
    assert [problem["cost"]["total"] for problem in report["problems"]] == pytest.approx([4 * dearer] * 2)
    assert "10.04 XTS" in bench.paths.report_text.read_text()
    assert "10.04 XTS" in bench.paths.report_page.read_text()
    rows = bench.paths.summary_csv.read_text().splitlines()
    assert ",5.02,0,XTS," in rows[1]


def test_money_without_a_price_is_refused_before_anything_is_spent(bench: Bench) -> None:
    bench.prices.write_text(PRICES.replace("test-*", "test-mode"))
    with ModelServer(wrong) as server:
        done = bench.run(server, "--prices", bench.prices, "--max-cost", 2)
        assert done.returncode == 64
        assert "--max-cost needs the price of test-model" in done.stderr
        assert server.count == 0 and not bench.results.exists()
        plain = bench.run(server, "--prices", bench.prices, "--attempts", 1, "--limit", 1)
    assert plain.returncode == 0, plain.stderr
    assert "cost unknown: no price for test-model" in plain.stdout
    assert bench.report()["overall"]["cost"] == {"total": None, "currency": None, "unpriced_replies": 2}


def test_tokens_and_time_end_the_run(bench: Bench) -> None:
    with ModelServer(wrong) as server:
        done = bench.run(server, "--max-tokens", 2 * TOKENS)
        assert done.returncode == 75, done.stderr
        assert server.count == 2 and bench.judged() == 2
        assert "--max-tokens 80 is used up" in done.stderr
        assert "an unknown amount of money, 80 tokens" in done.stderr
        assert bench.paths.problem(ONE).best_code.exists()
        late = bench.run(server, "--max-time", "0.5s")  # the first session took longer
        assert late.returncode == 75, late.stderr
        assert server.count == 2
        assert "--max-time 0.5 s is used up" in late.stderr
        done = bench.run(server, "--max-time", "1h30m")
        assert done.returncode == 0, done.stderr
        assert server.count == 8 and bench.asked() == {1: 8}


@pytest.mark.slow
def test_queued_evaluations_are_left_at_the_time_limit_and_judged_by_the_resume(bench: Bench, tmp_path: Path) -> None:
    """All replies are recorded, so at the limit everything that is left waits for the machine."""
    samples = 5  # more than are under way at the limit: four, two of them in a build
    replies = tmp_path / "replies"
    for sample in range(1, samples + 1):
        code = doors.candidate(f"return x * 2 + 1 + {sample} - {sample}")
        doors.reply(replies, ONE, 1, sample, doors.fenced(code))
    words = (1, 1, "--problems", bench.problems, "--replay", replies, "--results", bench.results, "--device", "cpu")
    more = ("--samples", samples, "--attempts", 1, *doors.QUICK)
    done = doors.run("run_batch", *words, *more, "--max-time", "1s")
    assert done.returncode == 75, done.stderr
    assert "--max-time 1.0 s is used up" in done.stderr
    first = bench.judged()
    assert first < samples
    states = [event for event in doors.events(bench.results) if isinstance(event, RunStopping | EvaluationFailed)]
    assert [type(event) for event in states] == [RunStopping]
    assert bench.closed().complete is False

    done = doors.call("run_batch", *words, *more, "--max-time", "1h")
    assert done.returncode == 0, done.stderr
    assert bench.judged() == samples and bench.closed().complete


def test_tokens_that_the_service_does_not_tell_cannot_be_watched(bench: Bench) -> None:
    with ModelServer(lambda _: Scripted(text="no", usage=None)) as server:
        done = bench.run(server, "--max-tokens", 1000)
        assert server.count == 1
    assert done.returncode == 75
    assert "--max-tokens cannot be kept" in done.stderr


def test_a_service_that_fails_too_often_ends_the_run(bench: Bench) -> None:
    def handler(request: Request) -> Scripted:
        return wrong(request) if addend(request) == 1 else Scripted(status=400, body=b'{"error": {"message": "odd"}}')

    with ModelServer(handler) as server:
        done = bench.run(server, "--samples", 12, "--attempts", 1, "--fail-on-error", 0.2)
        assert server.count == 12 + 4
    assert done.returncode == 69, done.stderr
    assert "4 of 16 model calls failed" in done.stderr and "HTTP 400" in done.stderr
    failed = [event for event in doors.events(bench.results) if isinstance(event, GenerationFailed)]
    assert len(failed) == 4


class Waiting:
    """Answers for the first problem with a candidate that sleeps; a call for the second waits for `go_on`."""

    def __init__(self) -> None:
        self.asked, self.go_on = threading.Event(), threading.Event()

    def __call__(self, request: Request) -> Scripted:
        if addend(request) == 1:
            return Scripted(text=doors.fenced(doors.candidate("import time; time.sleep(100)")))
        self.asked.set()
        self.go_on.wait(doors.LIMIT)
        return wrong(request)


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    handler = Waiting()
    yield handler
    handler.go_on.set()


def begun(bench: Bench, server: ModelServer, handler: Waiting) -> subprocess.Popen[str]:
    """A run with one evaluation and one model call under way."""
    more = ("--samples", 1, "--concurrency", 2, "--run-timeout", 60)
    process = bench.start(server, *more)
    doors.wait_for(bench.paths.journal, '"run"', process)
    assert handler.asked.wait(doors.LIMIT)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_for_what_is_paid_for(bench: Bench, waiting: Waiting, number: signal.Signals) -> None:
    with ModelServer(waiting) as server:
        process = begun(bench, server, waiting)
        family = doors.family(process)
        process.send_signal(number)
        assert process.stderr is not None
        assert "waiting for 1 model call (already paid for)" in process.stderr.readline()
        waiting.go_on.set()
        out, said = process.communicate(timeout=doors.LIMIT)
        assert process.returncode == 130, said
        assert "the same command resumes the run" in said and "Traceback" not in said
        assert "report:" in out
        assert doors.outliving(family) == []
        assert (bench.closed().complete, bench.closed().reason) == (False, "interrupted")
        assert bench.paths.problem(TWO).sample(1, 1).response.exists()
        assert bench.judged() == 0
        assert not any(isinstance(event, EvaluationFailed) for event in doors.events(bench.results))
        assert server.count == 2


def test_a_second_signal_ends_at_once(bench: Bench, waiting: Waiting) -> None:
    with ModelServer(waiting) as server:
        process = begun(bench, server, waiting)
        family = doors.family(process)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert "again to stop at once" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=doors.LIMIT)
        waiting.go_on.set()
    assert process.returncode == 130, said
    assert "the same command resumes" in said and "Traceback" not in said
    assert doors.outliving(family) == []
    assert (bench.closed().complete, bench.closed().reason) == (False, "interrupted")
    assert bench.paths.report_text.exists()


def test_recorded_replies_cost_nothing(bench: Bench, tmp_path: Path) -> None:
    """Their usage is shown as it was recorded, and no price is asked for."""
    replies = tmp_path / "replies"
    path = doors.reply(replies, ONE, 1, 1, doors.fenced(doors.fast(1)))
    usage = {"input": 11, "output": 29}
    path.with_name("exchange.json").write_text(json.dumps({"model": "test-model", "usage": usage}))
    words = (1, 1, "--problems", bench.problems, "--replay", replies, "--results", bench.results, "--device", "cpu")
    done = doors.call("run_batch", *words, *doors.QUICK, "--prices", bench.prices, "--max-cost", 1, "--max-tokens", 1)
    assert done.returncode == 0, done.stderr
    assert "spent: 11 input and 29 output tokens, cost 0: no model calls (recorded replies)" in done.stdout
    overall = bench.report()["overall"]
    assert overall["cost"] == {"total": 0.0, "currency": None, "unpriced_replies": 0}
    assert overall["cost_per_solved"] == 0.0
    assert overall["tokens"]["output"]["total"] == 29


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--max-time", "8", "write 90m, 8h or 3600s"),
        ("--max-time", "0s", "write 90m, 8h or 3600s"),
        ("--max-cost", "-1", "must be a positive amount"),
        ("--fail-on-error", "10", "must be a share"),
    ],
)
def test_what_is_no_budget_is_refused(bench: Bench, option: str, value: str, says: str) -> None:
    done = doors.call("run_batch", 1, 2, "--problems", bench.problems, "--dry-run", option, value)
    assert done.returncode == 64
    assert says in done.stderr
