"""One command in a cage, as the process that it is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support.isolation import runner_layers
from support.processes import living

from hkbench.sandbox.cage import Cage
from hkbench.sandbox.command import NOT_STARTED, words
from hkbench.sandbox.environment import device_files, readable_paths

LAYERS = runner_layers()


@pytest.fixture
def cage(tmp_path: Path) -> Cage:
    private = tmp_path / "private"
    private.mkdir()
    return Cage(readable_paths(), (str(private), *device_files()), LAYERS)


def run(cage: Cage, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    folder = Path(cage.writable[0])
    return subprocess.run([*words(cage), *command], capture_output=True, text=True, timeout=60, check=False, cwd=folder)


def test_output_and_exit_code_are_the_commands(cage: Cage) -> None:
    done = run(cage, ["sh", "-c", "pwd; echo no >&2; exit 7"])
    assert (done.returncode, done.stdout.strip(), done.stderr.strip()) == (7, cage.writable[0], "no")


def test_a_signal_shows_in_the_exit_code(cage: Cage) -> None:
    assert run(cage, ["sh", "-c", "kill -SEGV $$"]).returncode == 128 + 11


def test_a_command_that_does_not_exist(cage: Cage) -> None:
    done = run(cage, ["no-such-compiler"])
    assert done.returncode == NOT_STARTED
    assert "no-such-compiler: No such file" in done.stderr


@pytest.mark.skipif("namespaces" not in " ".join(LAYERS), reason="no namespaces here")
def test_files_outside_are_not_there(cage: Cage, tmp_path: Path) -> None:
    (tmp_path / "secret.h").write_text("int secret;\n")
    source = Path(cage.writable[0], "a.c")
    source.write_text(f'#include "{tmp_path}/secret.h"\n')
    command = ["cc", "-fsyntax-only", str(source)]
    assert "secret.h: No such file" in run(cage, command).stderr
    assert run(replace(cage, readable=(*cage.readable, str(tmp_path / "secret.h"))), command).returncode == 0


@pytest.mark.skipif("seccomp" not in " ".join(LAYERS), reason="no seccomp filter here")
def test_named_pipes_where_the_cage_allows_them(cage: Cage) -> None:
    refused = run(cage, ["mkfifo", "pipe"])
    assert refused.returncode != 0
    assert "Operation not permitted" in refused.stderr
    open_cage = replace(cage, named_pipes=True)
    assert run(open_cage, ["sh", "-c", "mkfifo pipe && test -p pipe"]).returncode == 0
    assert run(open_cage, ["mknod", "device", "c", "1", "3"]).returncode != 0


def test_killing_it_ends_the_command(cage: Cage) -> None:
    folder = Path(cage.writable[0])
    with subprocess.Popen([*words(cage), "sleep", "600"], cwd=folder) as process:
        deadline = time.monotonic() + 30
        while "sleep" not in living(process.pid).values() and time.monotonic() < deadline:
            time.sleep(0.02)
        below = living(process.pid)
        assert "sleep" in below.values()
        process.kill()
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in below) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [pid for pid in below if os.path.exists(f"/proc/{pid}")]  # noqa: PTH110


def test_it_starts_where_hkbench_is_only_on_the_path(cage: Cage) -> None:
    folder = Path(cage.writable[0])
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    done = subprocess.run(
        [*words(cage), sys.executable, "-c", "print(1)"],
        env=environment,
        cwd=folder,
        check=False,
        capture_output=True,
    )
    assert done.stdout == b"1\n"
