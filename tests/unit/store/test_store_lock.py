from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hkbench.store.lock import is_free, take


def test_a_lock_is_held_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    held = take(path)
    assert held is not None
    assert is_free(path) is False
    assert take(path) is None
    os.close(held)
    assert is_free(path) is True


def test_a_killed_holder_leaves_it_free(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    code = (
        f"from pathlib import Path; from hkbench.store.lock import take; take(Path({str(path)!r})); print(1); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert is_free(path) is False
        holder.kill()
        holder.wait()
    assert is_free(path) is True


def test_asking_does_not_keep_a_writer_out(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    path.touch()
    assert is_free(path) is True
    held = take(path)
    assert held is not None
    os.close(held)


def test_without_a_lock_file_nothing_is_known(tmp_path: Path) -> None:
    assert is_free(tmp_path / ".lock") is None
    assert not (tmp_path / ".lock").exists()
