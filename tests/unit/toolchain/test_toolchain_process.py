"""Running a tool: its environment, its end and its children's end."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from hkbench.toolchain.process import OUTPUT_LIMIT, run_tool


def _alive(pid: int) -> bool:
    """Whether a process still runs (one that only waits to be reaped does not)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def test_output_and_code_of_a_tool(tmp_path: Path) -> None:
    result = run_tool(["sh", "-c", "echo out; echo err >&2; exit 3"], tmp_path, 20)
    assert (result.returncode, result.output) == (3, "out\nerr\n")


def test_a_tool_gets_no_key_no_input_and_a_private_tmpdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_GATEWAY_KEY", "secret")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    result = run_tool(["sh", "-c", "env; cat; pwd; ulimit -c"], tmp_path, 20)
    lines = result.output.splitlines()
    assert "secret" not in result.output
    assert f"TMPDIR={tmp_path / 'tmp'}" in lines
    assert lines[-2:] == [str(tmp_path), "0"]


def test_a_timeout_ends_the_tool_and_its_children(tmp_path: Path) -> None:
    result = run_tool(["sh", "-c", "sleep 600 & echo $!; wait"], tmp_path, 0.5)
    assert result.returncode is None
    child = int(result.output)
    for _ in range(100):
        if not _alive(child):
            break
        time.sleep(0.05)
    assert not _alive(child)


def test_a_tool_is_stopped_before_its_time(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    result = run_tool(["sleep", "600"], tmp_path, 600, stop)
    assert result.returncode is None


def test_a_child_left_behind_by_a_finished_tool_is_ended(tmp_path: Path) -> None:
    result = run_tool(["sh", "-c", "sleep 600 & echo $!"], tmp_path, 20)
    assert result.returncode == 0
    for _ in range(100):
        if not _alive(int(result.output)):
            break
        time.sleep(0.05)
    assert not _alive(int(result.output))


def test_endless_output_is_cut(tmp_path: Path) -> None:
    result = run_tool(["sh", "-c", "yes | head -c 9000000"], tmp_path, 60)
    assert (result.returncode, len(result.output)) == (0, OUTPUT_LIMIT)


def test_a_tool_has_a_memory_limit(tmp_path: Path) -> None:
    more = f"b = bytearray({psutil.virtual_memory().total})"
    result = run_tool([sys.executable, "-c", more], tmp_path, 20)
    assert result.returncode == 1
    assert "MemoryError" in result.output


def test_a_prefix_stands_before_the_tool(tmp_path: Path) -> None:
    result = run_tool(
        ["echo", "done"], tmp_path, 20, prefix=("env", "NAME=value", "sh", "-c", 'echo $NAME; exec "$@"', "sh")
    )
    assert (result.returncode, result.output) == (0, "value\ndone\n")
