"""The folder of one evaluation: empty at the beginning, gone at the end, whatever was put into it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hkbench.engine.private_folder import private_folder, temporary_folder
from hkbench.errors import InternalError
from hkbench.sandbox import folders


def nest(folder: Path, depth: int) -> None:
    home = Path.cwd()
    try:
        os.chdir(folder)
        for _ in range(depth):
            Path("deep").mkdir()
            os.chdir("deep")
    finally:
        os.chdir(home)


async def test_it_is_emptied_made_and_removed(tmp_path: Path) -> None:
    (tmp_path / "build" / "left").mkdir(parents=True)
    nest(tmp_path / "build" / "left", 1200)
    async with private_folder(tmp_path / "build") as folder:
        assert list(folder.iterdir()) == []
        nest(folder, 1200)
    assert not (tmp_path / "build").exists()


async def failing(path: Path) -> None:
    async with private_folder(path) as folder:
        nest(folder, 1200)
        raise LookupError


async def test_it_is_removed_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(LookupError):
        await failing(tmp_path / "build")
    assert not (tmp_path / "build").exists()


async def test_what_cannot_be_removed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path, seconds: float) -> None:
        raise TimeoutError(f"{folder} could not be emptied within {seconds:g} s")

    (tmp_path / "build").mkdir()
    monkeypatch.setattr(folders, "remove", refuse)
    with pytest.raises(InternalError, match="by hand"):
        async with private_folder(tmp_path / "build"):
            pass


def test_a_temporary_folder() -> None:
    with temporary_folder() as folder:
        nest(folder, 1200)
    assert not folder.exists()
