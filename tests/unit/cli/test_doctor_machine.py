"""What doctor says of the service, folders, disk and memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from support import doors
from support.model_server import ModelServer, Scripted, script

from hkbench.cli.doctor_machine import GIB, disk, disks, gateway, memory, problems, prompts

KEY = "sk-test-0123456789abcdef"
LIST = Scripted(body=b'{"data": [{"id": "one"}]}')


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LLM_GATEWAY_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "KERNELBENCH_DIR"):
        monkeypatch.delenv(name, raising=False)


def test_a_service_is_asked_only_where_one_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gateway(None, None).text.startswith("not checked ") and gateway(None, None).problem is None
    assert "set LLM_GATEWAY_KEY" in str(gateway("http://127.0.0.1:1/v1", None).problem)
    assert "has to begin with http" in str(gateway("gateway.example", None).problem)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ModelServer(script(Scripted()), LIST) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        assert gateway(None, "one").problem is None
        assert gateway(None, None).text.startswith(f"{server.base_url}: answers, 1 models listed")
        assert gateway(None, "two").problem == "two is not among them: check --model"


def test_the_user_s_way_with_a_key_that_is_refused(tmp_path: Path) -> None:
    call = "import sys; from hkbench.cli.main import main; sys.exit(main(sys.argv[1:]))"
    with ModelServer(script(Scripted()), Scripted(status=401, body=KEY.encode())) as server:
        done = subprocess.run(
            [sys.executable, "-c", call, "doctor", "--no-devices", "--base-url", server.base_url],
            cwd=doors.ROOT, env=doors.environment({"LLM_GATEWAY_KEY": KEY}), capture_output=True, text=True,
            timeout=doors.LIMIT,
        )  # fmt: skip
        assert server.authorizations == [f"Bearer {KEY}"]
    assert done.returncode == 69, done.stdout + done.stderr
    assert f"problem    service    {server.base_url}: reached, HTTP 401\n" in done.stdout
    assert "the key is refused" in done.stdout
    assert "service" in done.stdout.splitlines()[-1]
    assert KEY not in done.stdout + done.stderr


def test_prompts_and_problems(tmp_path: Path) -> None:
    assert prompts(doors.ROOT / "prompts").problem is None
    (tmp_path / "config.json").write_text("{")
    assert "not JSON" in str(prompts(tmp_path).problem)
    assert problems(None).problem is None
    assert str(tmp_path / "none") in str(problems(tmp_path / "none").problem)


def test_disks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fine = disk("results", tmp_path / "a" / "b", 0.0, "why")
    assert fine.problem is None and f"GiB free for results ({tmp_path / 'a' / 'b'})" in fine.text
    full = disk("results", tmp_path, 1e9, "why")
    assert full.problem == "at least 1e+09 GiB: why; free some, or choose another place"
    real = os.statvfs(tmp_path)
    few = SimpleNamespace(f_files=100_000, f_favail=12, f_frsize=real.f_frsize)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10 * GIB))
    monkeypatch.setattr(os, "statvfs", lambda _: few)
    assert "12 inodes are left" in str(disk("results", tmp_path, 1.0, "why").problem)
    few.f_files = 0  # a file system that does not count them, as btrfs
    assert disk("results", tmp_path, 1.0, "why").problem is None
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "cannot be written" in str(disk("results", tmp_path, 1.0, "why").problem)


@pytest.mark.parametrize(("on_gpu", "bad"), [(False, 0), (True, 1)])
def test_a_gpu_s_libraries_want_room_for_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_gpu: bool, bad: int
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=3.5 * GIB))
    assert sum(row.problem is not None for row in disks(tmp_path, on_gpu)) == bad


@pytest.mark.parametrize(
    ("available", "cores", "words", "bad"),
    [(32.0, 4, "", False), (4.0, 8, "--builds 2", False), (1.0, 1, "", True)],
)
def test_memory(monkeypatch: pytest.MonkeyPatch, available: float, cores: int, words: str, bad: bool) -> None:
    found = SimpleNamespace(available=available * GIB, total=64.0 * GIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: found)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    row = memory()
    assert words in row.text and (row.problem is not None) is bad
    assert ("--builds" in row.text) is bool(words)
