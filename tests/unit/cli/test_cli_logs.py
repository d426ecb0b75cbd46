"""LOG_LEVEL: what is logged, where to, and never with a key."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from hkbench.cli.logs import log_as_asked
from hkbench.errors import UsageError
from hkbench.llm.key import KEY_VARIABLES

LOG = logging.getLogger("hkbench.anything")
KEY = "sk-0123456789"


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (*KEY_VARIABLES, "LOG_LEVEL"):
        monkeypatch.delenv(name, raising=False)
    yield
    monkeypatch.undo()
    log_as_asked()


def test_nothing_is_said_unasked(capsys: pytest.CaptureFixture[str]) -> None:
    log_as_asked()
    LOG.error("a word")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("level", "said"), [("debug", 3), ("INFO", 2), ("warning", 1), ("ERROR", 0)])
def test_levels(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], level: str, said: int) -> None:
    monkeypatch.setenv("LOG_LEVEL", level)
    log_as_asked()
    log_as_asked()  # once more does not say it twice
    LOG.debug("a word")
    LOG.info("a word")
    LOG.warning("a word")
    assert len(capsys.readouterr().err.splitlines()) == said


@pytest.mark.parametrize("name", KEY_VARIABLES)
def test_no_key_is_logged(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str) -> None:
    monkeypatch.setenv("LOG_LEVEL", "INFO")
    monkeypatch.setenv(name, f" {KEY}\n")
    log_as_asked()
    LOG.info("sent %s\x1b[2J", KEY)
    shown = capsys.readouterr().err
    assert "[key]" in shown and KEY not in shown and "\x1b" not in shown


def test_another_word_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOG_LEVEL", "LOUD")
    with pytest.raises(UsageError, match="LOUD"):
        log_as_asked()
