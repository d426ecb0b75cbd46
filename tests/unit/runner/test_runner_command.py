"""Starting a command beside the runner."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from hkbench.protocol.messages import Command, CommandEnded
from hkbench.runner.command import SHOWN_HALF, run_command


def launched(folder: Path, *command: str, **environment: str) -> CommandEnded:
    return run_command(Command(command=list(command), environment=environment, folder=str(folder)))


def test_exit_status_output_folder_and_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "kept")
    done = launched(tmp_path, "sh", "-c", 'pwd; echo "$KEPT $ADDED" >&2; exit 3', ADDED="added")
    assert done == CommandEnded(returncode=3, output=f"{tmp_path.resolve()}\nkept added\n")
    assert "ADDED" not in os.environ


def test_a_signal_is_a_negative_status(tmp_path: Path) -> None:
    assert launched(tmp_path, "sh", "-c", "kill -SEGV $$").returncode == -signal.SIGSEGV


def test_of_much_output_both_ends_are_kept(tmp_path: Path) -> None:
    code = f"print('begin'); print('x' * {3 * SHOWN_HALF}); print('end')"
    output = launched(tmp_path, sys.executable, "-c", code).output
    assert output.startswith("begin\nxxx")
    assert output.endswith("xxx\nend\n")
    assert "bytes left out" in output
    assert len(output) < 2 * SHOWN_HALF + 100


@pytest.mark.parametrize("size", [SHOWN_HALF - 1, SHOWN_HALF, SHOWN_HALF + 1, 2 * SHOWN_HALF])
def test_output_that_fits_is_whole(tmp_path: Path, size: int) -> None:
    code = f"import sys; sys.stdout.write(('0123456789' * {size})[:{size}])"
    assert launched(tmp_path, sys.executable, "-c", code).output == ("0123456789" * size)[:size]


def test_a_program_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no-such-profiler"):
        launched(tmp_path, "no-such-profiler")
