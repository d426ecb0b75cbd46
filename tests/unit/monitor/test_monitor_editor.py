"""Which editor is opened."""

from __future__ import annotations

import pytest

from hkbench.monitor.editor import editor_command


def test_the_editor_of_whoever_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", "code --wait 'a b'")
    monkeypatch.delenv("VISUAL", raising=False)
    assert editor_command() == ["code", "--wait", "a b"]
    monkeypatch.setenv("VISUAL", "vim")
    assert editor_command() == ["vim"]


def test_without_one_it_is_what_is_usually_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}" if name == "vi" else None)
    assert editor_command() == ["vi"]
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert editor_command() is None
