"""What a guard is told of the limits of its runner."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from hkbench.engine.guards import BUILD_BYTES, FULL_BYTES, check_disk, disk_bytes
from hkbench.errors import Unavailable
from hkbench.sandbox.limits import Limits


@pytest.mark.parametrize(("free", "allowed"), [(1 << 50, Limits.disk_bytes), (1 << 34, 1 << 33), (0, BUILD_BYTES)])
def test_a_runner_leaves_room_on_the_disk(
    free: int, allowed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    assert disk_bytes(tmp_path) == allowed


def test_a_full_disk_is_the_machine_s_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=FULL_BYTES))
    check_disk(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=FULL_BYTES - 1))
    with pytest.raises(Unavailable):
        check_disk(tmp_path)
