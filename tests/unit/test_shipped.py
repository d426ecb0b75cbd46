"""Which commands messages name: those of a checkout, or those of a wheel."""

from __future__ import annotations

from pathlib import Path

import pytest

from hkbench import shipped


def test_a_checkout_has_scripts_and_a_wheel_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (shipped.batch_command(), shipped.installing("ninja")) == ("python run_batch.py", "make setup")
    monkeypatch.setattr(shipped, "_DATA", tmp_path)
    assert (shipped.batch_command(), shipped.installing("ninja")) == ("hkbench run", "pip install ninja")
