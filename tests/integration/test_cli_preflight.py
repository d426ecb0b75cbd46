"""Mistakes that are known before anything is paid for: each made with the real command, each answered by one line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support import doors
from support.model_server import ModelServer, Request, Scripted, environment, script

from hkbench.cli import main

Done = subprocess.CompletedProcess[str]
NAME = "1_One"
KEY = "sk-test-0123456789"
NO_LIST = Scripted(status=404, body=b'{"error": "no such path"}')
LOGIN = Scripted(body=b"<html><title>Please log in</title></html>", content_type="text/html")


def refusing(status: int, message: str, code: str | None = None) -> Scripted:
    return Scripted(status=status, body=json.dumps({"error": {"message": message, "code": code}}).encode())


@pytest.fixture
def words(tmp_path: Path) -> tuple[object, ...]:
    doors.problem(tmp_path / "problems", NAME, 1)
    return (1, 1, "--problems", tmp_path / "problems", "--results", tmp_path / "run", "--device", "cpu", "--samples", 1)


def assert_refused(done: Done, code: int, said: str, tmp_path: Path) -> None:
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stderr
    assert done.stderr.count("\n") == 1, "said once, in one line"
    assert KEY not in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("models", "answer", "asked", "said"),
    [
        (refusing(401, "bad key"), refusing(401, "bad key"), 1, "check LLM_GATEWAY_KEY"),
        (NO_LIST, refusing(404, "no such model"), 2, "check --model and --base-url"),
        (NO_LIST, refusing(429, "pay", "insufficient_quota"), 1, "the quota is used up"),
        (NO_LIST, refusing(402, "pay"), 1, "no credit left"),
        (LOGIN, LOGIN, 2, "Please log in"),
    ],
)
def test_a_service_that_refuses(
    words: tuple[object, ...], tmp_path: Path, models: Scripted, answer: Scripted, asked: int, said: str
) -> None:
    with ModelServer(lambda _: answer, models) as server:
        done = doors.call("run_batch", *words, env=environment(server))
        assert server.count == asked
    assert_refused(done, 69, said, tmp_path)


def test_a_model_that_the_service_does_not_know_is_told_with_the_names_like_it(
    words: tuple[object, ...], tmp_path: Path
) -> None:
    with ModelServer(lambda _: refusing(404, "no such model")) as server:
        done = doors.call("run_batch", *words, "--model", "tset-model", env=environment(server))
    assert_refused(done, 69, "names like it: test-model", tmp_path)


def test_a_name_that_the_list_lacks_is_settled_by_a_short_call(words: tuple[object, ...], tmp_path: Path) -> None:
    seen: list[Request] = []

    def handler(request: Request) -> Scripted:
        seen.append(request)
        return Scripted(finish_reason="length")

    with ModelServer(handler) as server:
        done = doors.call("run_batch", *words, "--model", "alias", "--dry-run", env=environment(server))
    assert done.returncode == 0, done.stderr
    assert "alias answers a short call" in done.stdout
    assert [request["max_completion_tokens"] for request in seen] == [16]


def test_generate_asks_before_it_starts(words: tuple[object, ...], tmp_path: Path) -> None:
    with ModelServer(lambda _: refusing(401, "bad key"), NO_LIST) as server:
        given = ("--problem", tmp_path / "problems" / "level1" / f"{NAME}.py", "--output", tmp_path / "run")
        done = doors.call("generate", *given, "--device", "cpu", env=environment(server))
    assert_refused(done, 69, "check LLM_GATEWAY_KEY", tmp_path)


@pytest.mark.parametrize(
    ("address", "code", "said"),
    [
        ("http://no-such-host.invalid/v1", 69, "no-such-host.invalid cannot be resolved"),
        ("http://127.0.0.1:9/v1", 69, "nothing listens there"),
        ("gateway.example/v1", 64, "has to begin with http:// or https://"),
    ],
)
def test_an_address_that_is_wrong(
    words: tuple[object, ...], tmp_path: Path, address: str, code: int, said: str
) -> None:
    env = {"LLM_GATEWAY_KEY": KEY, "LLM_MODEL": "m", "LLM_GATEWAY_URL": address}
    assert_refused(doors.call("run_batch", *words, env=env), code, said, tmp_path)


def template_missing(folder: Path) -> tuple[object, ...]:
    prompts(folder, {"default_prompt": "nowhere.txt"})
    return ("--prompts", folder / "prompts")


def pattern_broken(folder: Path) -> tuple[object, ...]:
    (prompts(folder, {"default_prompt": "one.txt", "patterns": {"(": "one.txt"}}) / "one.txt").write_text("x")
    return ("--prompts", folder / "prompts")


def json_broken(folder: Path) -> tuple[object, ...]:
    (prompts(folder, {}) / "config.json").write_text('{"default_prompt": ')
    return ("--prompts", folder / "prompts")


def prompts(folder: Path, config: dict[str, object]) -> Path:
    made = folder / "prompts"
    made.mkdir()
    (made / "config.json").write_text(json.dumps(config))
    return made


def priced(text: str | None) -> Callable[[Path], tuple[object, ...]]:
    def write(folder: Path) -> tuple[object, ...]:
        if text is not None:
            (folder / "prices.toml").write_text(text)
        return ("--prices", folder / "prices.toml", "--max-cost", 1)

    return write


def backend(name: str) -> Callable[[Path], tuple[object, ...]]:
    return lambda _: ("--backend", name)


MISTAKES: dict[str, tuple[Callable[[Path], tuple[object, ...]], int, str]] = {
    "template missing": (template_missing, 64, "nowhere.txt"),
    "pattern broken": (pattern_broken, 64, "regular expression"),
    "json broken": (json_broken, 64, "config.json"),
    "price file missing": (priced(None), 66, "prices.toml"),
    "price file broken": (priced("currency = "), 64, "not TOML"),
    "price a string": (priced('currency = "XTS"\n[models.m]\ninput = "cheap"\noutput = 1.0\n'), 64, "input"),
    "model without a price": (
        priced('currency = "XTS"\n[models.other]\ninput = 1.0\noutput = 1.0\n'), 64, "--max-cost",
    ),
    "backend cuda": (backend("cuda"), 64, "backend cuda is for NVIDIA GPUs, and this device is a CPU"),
    "backend hip": (backend("hip"), 64, "backend hip is for AMD GPUs, and this device is a CPU"),
    "backend hipkittens": (backend("hipkittens"), 64, "backend hipkittens is for AMD GPUs, and this device is a CPU"),
    "backend triton": (backend("triton"), 64, "backend triton is for GPUs, and this device is a CPU"),
    "categories missing": (
        lambda folder: ("--strategy", "staged", "--categories", folder / "none.toml"), 64, "none.toml",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_what_is_wrong_here(
    words: tuple[object, ...],
    tmp_path: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The run and its dry run refuse the same, with the same code, and ask the model nothing."""
    make, code, said = MISTAKES[name]
    given = [*words, *make(tmp_path)]
    with ModelServer(script(Scripted())) as server:
        assert_refused(doors.call("run_batch", *given, env=environment(server)), code, said, tmp_path)
        for variable, value in environment(server).items():
            monkeypatch.setenv(variable, value)
        monkeypatch.setattr("hkbench.cli.main.linux.set_dumpable", lambda _: None)
        assert main.door("run", [*map(str, given), "--dry-run"]) == code
        assert said in capsys.readouterr().err
        assert server.count == 0


@pytest.mark.parametrize("door", ["run_batch", "eval"])
def test_no_compiler_is_a_failure_of_the_machine(words: tuple[object, ...], tmp_path: Path, door: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "code.py").write_text(doors.fast(1))
    problem = tmp_path / "problems" / "level1" / f"{NAME}.py"
    with ModelServer(script(Scripted())) as server:
        given = words if door == "run_batch" else ("--code", tmp_path / "code.py", "--problem", problem)
        env = environment(server) | {"PATH": str(tmp_path / "empty"), "CXX": ""}
        done = doors.call(door, *given, "--backend", "cpp", env=env)
        assert server.count == 0
    assert_refused(done, 69, "install g++", tmp_path)


def test_a_compiler_that_lacks_its_inner_program_is_a_failure_of_the_machine(
    words: tuple[object, ...], tmp_path: Path
) -> None:
    broken = tmp_path / "c++"
    broken.write_text("#!/bin/sh\necho \"c++: fatal error: cannot execute 'cc1plus'\" >&2\nexit 1\n")
    broken.chmod(0o755)
    with ModelServer(script(Scripted())) as server:
        done = doors.call("run_batch", *words, env=environment(server) | {"CXX": str(broken)})
    assert_refused(done, 69, "cannot execute 'cc1plus'", tmp_path)


def test_a_candidate_in_another_language_is_not_judged_as_one_of_the_device(
    words: tuple[object, ...], tmp_path: Path
) -> None:
    (tmp_path / "code.py").write_text(doors.fast(1))
    problem = tmp_path / "problems" / "level1" / f"{NAME}.py"
    given = ("--code", tmp_path / "code.py", "--problem", problem, "--device", "cpu", "--backend", "hip")
    assert_refused(doors.call("eval", *given), 64, "backend hip is for AMD GPUs", tmp_path)


def test_a_device_that_is_not_there(words: tuple[object, ...], tmp_path: Path) -> None:
    with ModelServer(script(Scripted())) as server:
        done = doors.call("run_batch", *words, "--device", "cuda", env=environment(server))
        assert server.count == 0
    assert done.returncode == 69 and "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()
