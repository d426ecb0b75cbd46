from __future__ import annotations

import io
import re
import threading
from pathlib import Path

import pytest
from rich.console import Console
from support.run_folder import RunFolder, correct, incorrect, run_config, sample_run

from hkbench.errors import UsageError
from hkbench.monitor import make_display
from hkbench.monitor.describe import describe
from hkbench.monitor.head import head
from hkbench.monitor.progress import PlainDisplay, RichDisplay
from hkbench.records import (
    AnyEvent,
    AttemptClosed,
    CallRetried,
    EvaluationFailed,
    GenerationFailed,
    GenerationStarted,
    PromptRendered,
    ReplyReceived,
    RunClosed,
    RunStarted,
    SampleKey,
    Status,
    Usage,
)
from hkbench.store.events import CorruptEntry, read_events
from hkbench.store.state import RunState


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def events_of(run: RunFolder) -> list[AnyEvent]:
    return [event for event in read_events(run.paths.journal) if not isinstance(event, CorruptEntry)]


def shown(kind: str | None, run: RunFolder, stream: io.StringIO | None = None) -> str:
    stream = stream or io.StringIO()
    display = make_display(kind, stream, run.config, name="results")
    for event in events_of(run):
        display.on_event(event)
    display.close()
    assert not stream.closed
    return stream.getvalue()


def test_plain_has_a_line_for_what_matters(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("4_RMSNorm_fp32",)))
    run.start()
    run.begin("4_RMSNorm_fp32")
    run.sample("4_RMSNorm_fp32", 1, 2, incorrect("4_RMSNorm_fp32"))
    run.sample("4_RMSNorm_fp32", 2, 1, correct("4_RMSNorm_fp32", 1.5))
    run.end("4_RMSNorm_fp32", solved=True)
    run.close()
    lines = [line.partition(" ") for line in shown("plain", run).splitlines()]
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d", clock) for clock, _, _ in lines)
    assert [text for _, _, text in lines] == [
        "[0/4] the run begins",
        "[0/4] 4_RMSNorm_fp32: begun, preparing its prompt",
        "[1/4] 4_RMSNorm_fp32 attempt 1 sample 2: wrong, build_error (4.0 s)",
        "[2/4] 4_RMSNorm_fp32 attempt 2 sample 1: faster 1.50x [1.35, 1.65] (4.0 s)",
        "[2/2] 4_RMSNorm_fp32: solved",
        "[2/2] the run is complete",
    ]


def test_plain_counts_what_earlier_sessions_judged(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_ReLU", "2_Sum")))
    run.start()
    run.begin("1_ReLU")
    run.sample("1_ReLU", 1, 1, incorrect("1_ReLU"))
    stream = io.StringIO()
    display = make_display("plain", stream, run.config, history=events_of(run))
    display.on_event(RunStarted(time=run.tick(), resumed=True))
    display.close()
    assert stream.getvalue().endswith(" [1/8] the run resumes\n")


def test_log_has_every_event_with_its_time(tmp_path: Path) -> None:
    run = sample_run(tmp_path)
    lines = shown("log", run).splitlines()
    assert len(lines) == len(events_of(run))
    assert lines[0] == "2023-11-14T22:13:21.000+00:00 the run begins"
    assert any(line.endswith("1_ReLU attempt 1 sample 1: code found (only_block)") for line in lines)
    assert any(line.endswith("sample 1: answered by test-model, 50 tokens (2.5 s)") for line in lines)


def test_json_is_the_journal(tmp_path: Path) -> None:
    run = sample_run(tmp_path)
    assert shown("json", run) == run.paths.journal.read_text()


def test_rich_shows_the_last_state(tmp_path: Path) -> None:
    text = shown("rich", sample_run(tmp_path))
    assert "hkbench results  finished" in text
    assert "2_Sum" in text


def test_rich_takes_in_the_history_of_a_resumed_run(tmp_path: Path) -> None:
    run = sample_run(tmp_path)
    stream = io.StringIO()
    display = make_display("rich", stream, run.config, history=events_of(run))
    display.close()
    assert "4/4 problems" in stream.getvalue()


def test_none_picks_by_the_stream(tmp_path: Path) -> None:
    config = run_config()
    plain = make_display(None, io.StringIO(), config)
    rich = make_display(None, Terminal(), config)
    rich.close()
    assert isinstance(plain, PlainDisplay)
    assert isinstance(rich, RichDisplay)


def test_an_unknown_display_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="rich, plain, log, json"):
        make_display("fancy", io.StringIO(), run_config())


KEY = SampleKey(problem="1_\x1b[31mReLU", attempt=1, sample=1)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            GenerationFailed(time=0, key=KEY, error="ModelUnavailable", message="503\n\x1b[2Jbusy"),
            "1_ReLU attempt 1 sample 1: model call failed, ModelUnavailable: 503 busy",
        ),
        (
            EvaluationFailed(time=0, key=KEY, error="WorkerLost", message="gone"),
            "1_ReLU attempt 1 sample 1: evaluation failed, WorkerLost: gone",
        ),
        (
            PromptRendered(time=0, problem="1_ReLU", attempt=2, template="hip/gemm.txt", sha256="0"),
            "1_ReLU attempt 2: prompt from hip/gemm.txt",
        ),
        (
            AttemptClosed(time=0, problem="1_ReLU", attempt=1, best_sample=2, status=Status.SLOW, speedup=0.5),
            "1_ReLU attempt 1: closed, best is sample 2, slow, 0.50x",
        ),
        (
            AttemptClosed(time=0, problem="1_ReLU", attempt=1, best_sample=None, status=None, speedup=None),
            "1_ReLU attempt 1: closed, no sample",
        ),
        (RunClosed(time=0, complete=False, reason="interrupted"), "the run stopped: interrupted"),
        (RunClosed(time=0, complete=False), "the run stopped"),
    ],
)
def test_describe(event: AnyEvent, line: str) -> None:
    assert describe(event) == line


def test_what_many_calls_meet_at_once_is_told_of_once() -> None:
    stream = io.StringIO()
    display = make_display("plain", stream, run_config(("1_ReLU",)))

    def retried(sample: int, tries: int) -> CallRetried:
        key = SampleKey(problem="1_ReLU", attempt=1, sample=sample)
        return CallRetried(time=0, key=key, cause="HTTP 503: busy", tries=tries, wait=8.0, limit=1800.0, max_tries=None)

    for tries in (1, 2):
        for sample in (1, 2, 3):
            display.on_event(retried(sample, tries))
    for sample in (1, 2, 3):
        key = SampleKey(problem="1_ReLU", attempt=1, sample=sample)
        display.on_event(GenerationFailed(time=0, key=key, error="ServiceOutage", message="no answer for 30 min"))
    display.on_event(RunClosed(time=0, complete=False, reason="no answer for 30 min"))
    display.close()
    lines = stream.getvalue().splitlines()
    assert [line.split("] ", 1)[1].split(":")[0] for line in lines] == [
        "service", "service", "1_ReLU attempt 1 sample 1", "the same error 3 more times",
    ]  # fmt: skip
    assert "in 8 s (try 2, for up to 30 min 00 s)" in lines[0] and "HTTP 503" in lines[0]


def test_trouble_of_the_service_is_shown_until_it_answers() -> None:
    state = RunState(run_config(("1_ReLU",)))
    key = SampleKey(problem="1_ReLU", attempt=1, sample=1)
    state.apply(CallRetried(time=1, key=key, cause="HTTP 503", tries=1, wait=1.0, limit=60.0, max_tries=None))
    assert "HTTP 503" in "\n".join(line.plain for line in head(state, "run", 2.0, None))
    reply = {"model": "m", "usage": Usage(), "seconds": 1.0, "tries": 2, "replayed": False, "finish_reason": "stop"}
    state.apply(ReplyReceived.model_validate({"time": 3, "key": key, **reply}))
    assert "HTTP 503" not in "\n".join(line.plain for line in head(state, "run", 4.0, None))


def test_rich_draws_while_events_come(tmp_path: Path) -> None:
    """From another thread, over and over: no event changes the state in the middle of a drawing."""
    run = RunFolder(tmp_path, run_config(("1_ReLU",), samples=300))
    display = make_display("rich", io.StringIO(), run.config)
    assert isinstance(display, RichDisplay)
    failures: list[BaseException] = []
    done = threading.Event()

    def draw() -> None:
        console = Console(file=io.StringIO(), width=400)
        try:
            while not done.is_set():
                console.print(display._view())
        except RuntimeError as error:
            failures.append(error)

    thread = threading.Thread(target=draw)
    thread.start()
    for sample in range(1, 301):
        key = SampleKey(problem="1_ReLU", attempt=1, sample=sample)
        display.on_event(GenerationStarted(time=float(sample), key=key))
    done.set()
    thread.join()
    display.close()
    assert not failures
