"""`hkbench COMMAND`: exit codes and messages, whatever goes wrong."""

from __future__ import annotations

import argparse
import errno
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hkbench.cli.batch import EventBus
from hkbench.cli.main import COMMANDS, door, main
from hkbench.cli.models import shown_base_url
from hkbench.errors import DeviceUnavailable
from hkbench.monitor import Display
from hkbench.records import AnyEvent, RunStarted


@pytest.mark.parametrize("arguments", [[], ["fly"], ["eval"], ["run", "--samples", "0"], ["export"]])
def test_wrong_arguments_are_64(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 64
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and said[0].startswith("hkbench") and said[0].endswith("--help")


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    calls: tuple[Callable[[], int], ...] = (lambda: main([command, "--help"]), lambda: door(command, ["--help"]))
    for call in calls:
        with pytest.raises(SystemExit) as left:
            call()
        assert left.value.code == 0
        assert COMMANDS[command].load().DESCRIPTION.split()[0] in capsys.readouterr().out


def test_a_readers_missing_folder_is_66(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "no\x1b[31mwhere")]) == 66
    said = capsys.readouterr().err
    assert said.startswith("hkbench: ")
    assert "nowhere" in said  # without the escape


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (DeviceUnavailable("no such GPU"), 69, "hkbench: no such GPU"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (OSError(errno.ENOSPC, "No space left on device", "run/journal.jsonl"), 70, "journal.jsonl"),
        (ZeroDivisionError("a fault"), 70, "ZeroDivisionError: a fault"),
        (ExceptionGroup("two", [ValueError("one"), ValueError("other")]), 70, "a fault of hkbench"),
        (BrokenPipeError(), 141, ""),
    ],
)
def test_what_goes_wrong_is_never_a_verdict(
    error: BaseException, code: int, words: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(_: argparse.Namespace) -> int:
        raise error

    monkeypatch.setattr(COMMANDS["report"].load(), "run", fail)
    copy = os.dup(1)  # a closed pipe makes standard output the null device
    try:
        assert door("report", ["folder"]) == code
    finally:
        os.dup2(copy, 1)
        os.close(copy)
    assert words in capfd.readouterr().err


class Reader:
    """A display that is told until it hangs up."""

    def __init__(self, patience: int, number: int = errno.EPIPE) -> None:
        self._number = number
        self.told = 0
        self.closed = False
        self._patience = patience

    def on_event(self, event: AnyEvent) -> None:
        if self.told == self._patience:
            raise OSError(self._number, "gone")
        self.told += 1

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("number", [errno.EPIPE, errno.EIO])
def test_a_reader_that_hangs_up_is_let_go(number: int) -> None:
    """A pipe, or a terminal."""
    leaves, stays = Reader(1, number), Reader(10)
    audience = EventBus()
    for one in (leaves, stays):
        audience.add(cast(Display, one))
    for _ in range(3):
        audience.tell(RunStarted(time=1.0, resumed=False))
    audience.close()
    assert (leaves.told, leaves.closed) == (1, False)
    assert (stays.told, stays.closed) == (3, True)


@pytest.mark.parametrize(
    ("option", "variable", "replay", "shown"),
    [
        (None, "", None, None),
        ("https://a.example/v1", "https://b.example", None, "https://a.example/v1"),
        (None, "https://user:secret@b.example:8443/v1?x=1", None, "https://b.example:8443/v1?x=1"),
        ("https://a.example/v1", "", Path("replies"), None),
    ],
)
def test_the_recorded_address_is_the_one_in_force_without_a_password(
    option: str | None, variable: str, replay: Path | None, shown: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", variable)
    options: Any = SimpleNamespace(base_url=option, replay=replay)
    assert shown_base_url(options) == shown
