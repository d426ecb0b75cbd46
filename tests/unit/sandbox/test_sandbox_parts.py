"""The parts of the sandbox that need no fork server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes import living

from hkbench.sandbox import linux
from hkbench.sandbox.client import memory_file, seal_memory
from hkbench.sandbox.environment import kept_environment, runner_environment
from hkbench.sandbox.guard import OUTPUT_HALF, Output


def test_short_output_is_kept_whole() -> None:
    output = Output()
    for part in (b"one ", b"two", b"\n"):
        output.add(part)
    assert output.text() == "one two\n"
    assert output.total == 8


@pytest.mark.parametrize("block", [1000, 7919, 1 << 16, 1 << 20])
def test_long_output_keeps_both_ends(block: int) -> None:
    data = b"".join(b"%07d\n" % number for number in range(40_000))
    output = Output()
    for start in range(0, len(data), block):
        output.add(data[start : start + block])
    head, _, rest = output.text().partition("\n[... ")
    note, _, tail = rest.partition(" ...]\n")
    assert head.encode() == data[:OUTPUT_HALF]
    assert tail.encode() == data[-OUTPUT_HALF:]
    assert note == f"{len(data) - 2 * OUTPUT_HALF} bytes left out"


def test_output_of_exactly_both_ends_has_no_gap() -> None:
    output = Output()
    output.add(b"a" * OUTPUT_HALF + b"b" * OUTPUT_HALF)
    assert output.text() == "a" * OUTPUT_HALF + "b" * OUTPUT_HALF


def test_output_that_is_not_text() -> None:
    output = Output()
    output.add(b"\xff\xfe ok")
    assert output.text() == "�� ok"


def test_descendants_are_found_through_odd_names(tmp_path: Path) -> None:
    script = (
        "import ctypes, subprocess, sys\n"
        "ctypes.CDLL(None).prctl(15, b') R 1 (', 0, 0, 0)\n"  # PR_SET_NAME
        "child = subprocess.Popen(['sleep', '60'])\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.read()\nchild.kill()\nchild.wait()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        grandchild = int(process.stdout.readline())
        found = living()
        below = living(process.pid)
        resident = linux.resident_bytes([process.pid, grandchild])
        process.communicate("")
    assert found[process.pid] == ") R 1 ("
    assert found[grandchild] == "sleep"
    assert set(below) == {grandchild}
    assert resident > 1 << 20
    assert process.pid not in living()
    assert linux.resident_bytes([process.pid]) == 0


@pytest.mark.parametrize(
    ("first", "second"), [("HIPKITTENS_ROOT", "THUNDERKITTENS_ROOT"), ("THUNDERKITTENS_ROOT", "HIPKITTENS_ROOT")]
)
def test_a_checkout_of_hipkittens_goes_by_both_names(first: str, second: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(second, raising=False)
    monkeypatch.setenv(first, "/opt/kittens")
    kept = kept_environment()
    assert kept[first] == kept[second] == "/opt/kittens"


def test_only_listed_variables_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_GATEWAY_KEY", "secret")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://somewhere")
    monkeypatch.setenv("CUDA_HOME", "/opt/cuda")
    kept = kept_environment()
    assert kept["CUDA_HOME"] == "/opt/cuda"
    assert not {"LLM_GATEWAY_KEY", "OPENAI_BASE_URL", "HOME"} & set(kept)


def test_a_runner_s_folders_are_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_JOBS", "7")
    one, two = runner_environment(tmp_path / "one"), runner_environment(tmp_path / "two")
    assert one["HOME"] != two["HOME"] and Path(one["TMPDIR"]).is_dir()
    assert one["MAX_JOBS"] == "7"


def test_a_sealed_file_cannot_change_its_size() -> None:
    fd = memory_file("test")
    try:
        seal_memory(fd, 4096)
        for size in (0, 8192):
            with pytest.raises(PermissionError):
                os.ftruncate(fd, size)
        with pytest.raises(PermissionError):
            seal_memory(fd, 8192)
    finally:
        os.close(fd)


def test_the_interpreters_own_tools_come_first(tmp_path: Path) -> None:
    """ninja is installed beside the interpreter, and nobody has to activate that environment."""
    path = runner_environment(tmp_path)["PATH"]
    found = shutil.which("ninja", path=path)
    assert found is not None
    assert Path(found).parent == Path(sys.executable).parent
