"""run_batch.py and generate.py against a real HTTP server on this machine."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from support import doors
from support.model_server import USAGE, ModelServer, Request, Scripted, prompt_of

from hkbench.records import CallRetried, GenerationFailed, GenerationStarted, ReplyReceived, RunClosed
from hkbench.store.layout import RunPaths

KEY = "sk-test-0123456789abcdef"
ONE, TWO = "1_One", "2_Two"
AT_ONCE = {"retry-after": "0"}


def choose(request: Request) -> int:
    """The addend of the problem that the prompt shows, which tells the problems apart."""
    found = re.search(r"y = x \* 2 \+ (\d)", prompt_of(request))
    assert found is not None
    return int(found[1])


def good(request: Request) -> Scripted:
    return Scripted(text=doors.fenced(doors.fast(choose(request))))


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    folder = tmp_path / "problems"
    doors.problem(folder, ONE, 1)
    doors.problem(folder, TWO, 2)
    return folder


def arguments(problems: Path, results: Path, *more: object) -> tuple[object, ...]:
    fixed = (1, 2, "--problems", problems, "--results", results, "--device", "cpu", "--model", "test-model")
    return (*fixed, "--samples", 2, "--attempts", 2, *doors.QUICK, *more)


def settings(server: ModelServer) -> dict[str, str]:
    return {"OPENAI_BASE_URL": server.base_url, "LLM_GATEWAY_KEY": KEY}


def assert_key_is_nowhere(results: Path, *outputs: str) -> None:
    for path in results.rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes(), path
    assert all(KEY not in output for output in outputs)


def test_a_whole_run_with_a_bad_moment(problems: Path, tmp_path: Path) -> None:
    """The first call is put off with 429; the key, which one reply quotes, is written nowhere."""
    lock, calls = threading.Lock(), Counter[str]()

    def handler(request: Request) -> Scripted:
        with lock:
            calls["all"] += 1
            if calls["all"] == 1:
                return Scripted(status=429, headers=AT_ONCE, body=b'{"error": {"message": "slow down"}}')
        answer = good(request)
        return Scripted(text=f"Your key is {KEY}.\n{answer.text}") if choose(request) == 2 else answer

    results = tmp_path / "results"
    with ModelServer(handler) as server:
        done = doors.call("run_batch", *arguments(problems, results), env=settings(server))
        assert done.returncode == 0, done.stderr
        assert server.count == 5
        assert set(server.authorizations) == {f"Bearer {KEY}"}
        assert {request["model"] for request in server.requests} == {"test-model"}
        address = server.base_url
    assert_key_is_nowhere(results, done.stdout, done.stderr)
    paths = RunPaths(results)
    assert json.loads(paths.run.read_text())["config"]["base_url"] == address
    report = json.loads(paths.report_json.read_text())
    tokens = report["overall"]["tokens"]
    assert {name: tokens[name]["total"] for name in ("input", "output", "reasoning", "cached_input")} == {
        "input": 4 * USAGE["input"],
        "output": 4 * USAGE["output"],
        "reasoning": 4 * USAGE["reasoning"],
        "cached_input": 4 * USAGE["cached"],
    }
    assert report["overall"]["calls"] == {"made": 4, "replayed": 0, "retries": 1, "failed": 0}
    received = [event for event in doors.events(results) if isinstance(event, ReplyReceived)]
    assert sorted(event.tries for event in received) == [1, 1, 1, 2]
    exchange = json.loads(paths.problem(ONE).sample(1, 1).exchange.read_text())
    assert exchange["usage"]["reasoning"] == USAGE["reasoning"]
    assert "text" not in exchange


def test_a_refused_key_ends_the_run_at_once(problems: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}).encode()
    with ModelServer(lambda _: Scripted(status=401, body=body)) as server:
        done = doors.call("run_batch", *arguments(problems, results), env=settings(server))
        assert server.count <= 4  # nobody tries twice
    assert done.returncode == 69
    assert done.stderr.count("HTTP 401") == 1
    assert "check LLM_GATEWAY_KEY" in done.stderr
    assert "Traceback" not in done.stderr
    assert_key_is_nowhere(results, done.stdout, done.stderr)
    events = doors.events(results)
    assert any(isinstance(event, GenerationFailed) for event in events)
    closed = events[-1]
    assert isinstance(closed, RunClosed) and not closed.complete and "HTTP 401" in str(closed.reason)
    report = json.loads(RunPaths(results).report_json.read_text())  # written also when a run ends early
    assert report["overall"]["calls"]["made"] == 0


def test_a_service_that_goes_away_costs_nothing_twice(problems: Path, tmp_path: Path) -> None:
    """It answers three calls of four and then only 503; later it is well again."""
    lock, answered = threading.Lock(), list[tuple[int, int]]()
    well = threading.Event()

    def handler(request: Request) -> Scripted:
        with lock:
            if len(answered) == 3 and not well.is_set():
                return Scripted(status=503, headers=AT_ONCE, body=b"down")
            answered.append((choose(request), len(answered)))
        return good(request)

    results = tmp_path / "results"
    with ModelServer(handler) as server:
        words = arguments(problems, results, "--base-url", server.base_url, "--outage", "2s")
        first = doors.call("run_batch", *words, env=settings(server))
        assert first.returncode == 69, first.stderr
        assert "HTTP 503" in first.stderr
        assert "service: no answer (HTTP 503" in first.stdout, "what is waited for is shown"
        assert any(isinstance(event, CallRetried) and event.limit == 2.0 for event in doors.events(results))
        assert "the same command resumes the run" in first.stderr
        assert "Traceback" not in first.stderr
        before = server.count
        well.set()
        # The address comes from the environment now: where it is named makes no difference.
        second = doors.call("run_batch", *arguments(problems, results), env=settings(server))
        assert second.returncode == 0, second.stderr
        assert server.count == before + 1
    assert Counter(addend for addend, _ in answered) == {1: 2, 2: 2}
    assert_key_is_nowhere(results, first.stdout, first.stderr, second.stdout, second.stderr)
    started = Counter(event.key for event in doors.events(results) if isinstance(event, GenerationStarted))
    assert sorted(started.values()) == [1, 1, 1, 2]


@pytest.mark.slow
def test_a_server_that_dies(problems: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    asked, go_on = threading.Event(), threading.Event()

    def handler(request: Request) -> Scripted:
        if choose(request) == 1:
            return good(request)
        asked.set()
        go_on.wait(doors.LIMIT)
        return Scripted(cut_after=1, text="half of a reply")

    with ModelServer(handler) as server:
        address = server.base_url
        words = arguments(problems, results, "--base-url", address, "--outage", "3s")
        process = doors.start("run_batch", *words, env=settings(server))
        assert asked.wait(doors.LIMIT)
        doors.wait_for(RunPaths(results).journal, "verdict_reached", process)
        go_on.set()
    out, said = process.communicate(timeout=doors.LIMIT)
    assert process.returncode == 69
    assert "no connection" in said and "--outage" in said
    assert "Traceback" not in said
    assert_key_is_nowhere(results, out, said)
    assert RunPaths(results).problem(ONE).best_result.exists()


def generate(problems: Path, output: Path, handler: Callable[[Request], Scripted], *more: object) -> tuple[int, str]:
    words = ("--problem", problems / "level1" / f"{ONE}.py", "--output", output, "--device", "cpu", "--model", "m")
    with ModelServer(handler) as server:
        done = doors.call("generate", *words, "--base-url", server.base_url, *more, env={"OPENAI_API_KEY": KEY})
    assert KEY not in done.stdout + done.stderr
    return done.returncode, done.stdout + done.stderr


def test_generate_asks_once(problems: Path, tmp_path: Path) -> None:
    output = tmp_path / "kernel.py"
    seen = list[Request]()

    def handler(request: Request) -> Scripted:
        seen.append(request)
        return good(request)

    code, said = generate(problems, output, handler, "--api", "responses", "--max-reply-tokens", "77")
    assert code == 0, said
    assert output.read_text() == doors.fast(1)
    assert len(seen) == 1
    assert seen[0]["max_output_tokens"] == 77
    assert "ModelNew" in prompt_of(seen[0])


def test_generate_binds_a_kernel_without_the_class(problems: Path, tmp_path: Path) -> None:
    loop = "for (int64_t i = 0; i < n_elements; ++i) out[i] = x[i];"
    kernel = f"void twice(const float* x, float* out, int64_t n_elements) {{\n  {loop}\n}}"
    output = tmp_path / "kernel.py"
    code, said = generate(problems, output, lambda _: Scripted(text=f"```cpp\n{kernel}\n```\n"))
    assert (code, "bound_kernel" in said) == (0, True), said
    assert kernel in output.read_text() and "class ModelNew" in output.read_text()


SYSTEM = "You are an expert HIP programmer.\nconst int table[2][2] = {{0,1},{2,3}};\n"


def test_generate_sends_a_plain_prompt_as_the_system_message(problems: Path, tmp_path: Path) -> None:
    custom = tmp_path / "custom.txt"
    custom.write_text(SYSTEM)
    seen = list[Request]()

    def handler(request: Request) -> Scripted:
        seen.append(request)
        return good(request)

    code, said = generate(problems, tmp_path / "kernel.py", handler, "--prompt", custom)
    assert code == 0, said
    system, user = seen[0]["messages"]
    assert system == {"role": "system", "content": SYSTEM}
    assert user["role"] == "user"
    assert all(part in user["content"] for part in ("class Model(", "ModelNew", "Correctness:", "## Answer"))
    assert SYSTEM not in user["content"]


def test_a_folder_of_plain_prompts_serves_a_run_and_its_replay(problems: Path, tmp_path: Path) -> None:
    """Every call has the system message; the folder records it, and a resume and a replay use what is recorded."""
    prompts, results = tmp_path / "prompts", tmp_path / "results"
    prompts.mkdir()
    (prompts / "mine.txt").write_text(SYSTEM)
    (prompts / "config.json").write_text(json.dumps({"default_prompt": "mine.txt"}))
    answers = {1: doors.wrong, 2: doors.fast}

    def handler(request: Request) -> Scripted:
        attempt = 2 if "## Your attempt 1" in prompt_of(request) else 1
        return Scripted(text=doors.fenced(answers[attempt](choose(request))))

    words = (1, 1, "--problems", problems, "--device", "cpu", "--samples", 1, "--attempts", 2, *doors.QUICK)
    with ModelServer(handler) as server:
        more = ("--model", "m", "--prompts", prompts)
        done = doors.call("run_batch", *words, "--results", results, *more, env=settings(server))
        assert done.returncode == 0, done.stderr
        assert [[message["role"] for message in request["messages"]] for request in server.requests] == [
            ["system", "user"]
        ] * 2
        assert {request["messages"][0]["content"] for request in server.requests} == {SYSTEM}
    paths = RunPaths(results).problem(ONE)
    assert paths.system(1).read_text() == paths.system(2).read_text() == paths.best_system.read_text() == SYSTEM
    assert SYSTEM not in paths.prompt(1).read_text() and "class Model(" in paths.prompt(1).read_text()
    assert json.loads(paths.sample(1, 1).exchange.read_text())["request"]["system"] == SYSTEM
    again = tmp_path / "again"
    done = doors.call("run_batch", *words, "--results", again, "--replay", results, "--prompts", prompts)
    assert done.returncode == 0, done.stderr
    for attempt in (1, 2):
        assert RunPaths(again).problem(ONE).system(attempt).read_text() == SYSTEM


def test_generate_with_a_refused_key(problems: Path, tmp_path: Path) -> None:
    code, said = generate(problems, tmp_path / "kernel.py", lambda _: Scripted(status=401, body=b"{}"))
    assert code == 69
    assert "HTTP 401" in said and "Traceback" not in said
    assert not (tmp_path / "kernel.py").exists()


def test_a_filtered_answer_is_logged_and_the_run_goes_on(problems: Path, tmp_path: Path) -> None:
    """By Google's key, and without it in anything that is said or kept."""
    results = tmp_path / "run"

    def answer(request: Request) -> Scripted:
        return Scripted(finish_reason="SAFETY") if choose(request) == 1 else good(request)

    with ModelServer(answer) as server:
        env = {"OPENAI_BASE_URL": server.base_url, "GOOGLE_API_KEY": KEY, "LOG_LEVEL": "DEBUG"}
        more = ("--attempts", 1, "--samples", 1)
        done = doors.call("run_batch", *arguments(problems, results, *more), env=env)
    assert done.returncode == 0, done.stderr
    assert set(server.authorizations) == {f"Bearer {KEY}"}
    replies = {event.key.problem: event for event in doors.events(results) if isinstance(event, ReplyReceived)}
    assert {name: reply.finish_reason for name, reply in replies.items()} == {ONE: "content_filter", TWO: "stop"}
    assert "empty answer of test-model, ended by content_filter" in done.stderr
    assert "ended by content_filter" in (results / "batch_run.log").read_text()
    assert f"{TWO} 1.1: " in done.stderr and "reply of test-model in" in done.stderr
    assert_key_is_nowhere(results, done.stdout, done.stderr)
