"""The fork servers of runners that see no library's device code."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from support.isolation import runner_layers, surveyed

from hkbench.device_kinds import model_of
from hkbench.engine import library_free
from hkbench.engine.library_free import LibraryFreeRunners
from hkbench.records import DeviceKind, EvaluationSettings, Isolation, Reach, Track
from hkbench.sandbox.cage import NAMESPACES
from hkbench.sandbox.environment import kept_environment

HERE = Isolation.model_validate(surveyed())
ALONE = HERE.model_copy(update={"layers": ()})
needs_namespaces = pytest.mark.skipif(
    not any(layer.startswith(NAMESPACES) for layer in runner_layers()), reason="no mount namespaces here"
)


@pytest.mark.parametrize(
    ("kind", "track", "isolation"),
    [
        (DeviceKind.CPU, Track.OWN, HERE),
        (DeviceKind.CUDA, Track.ANY, HERE),
        (DeviceKind.CUDA, Track.OWN, ALONE),
    ],
)
async def test_where_there_are_none_all_is_within_reach(kind: DeviceKind, track: Track, isolation: Isolation) -> None:
    runners = LibraryFreeRunners(EvaluationSettings(track=track))
    runners.start(kind, isolation, {}, early=True)
    reach, because = await runners.least(Reach.OWN)
    assert reach is Reach.ALL and because
    await runners.close()


@needs_namespaces
async def test_one_server_for_each_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(library_free, "_CHECK", "this")  # there is no GPU here that could work with the copies
    runners = LibraryFreeRunners(EvaluationSettings())
    runners.start(DeviceKind.CUDA, HERE, kept_environment(), early=True)
    try:
        for reach in Reach:
            assert await runners.least(reach) == (reach, None)
        assert runners.server(Reach.OWN) is not runners.server(Reach.SIMPLE)
    finally:
        await runners.close()


async def test_a_library_that_cannot_be_read_leaves_all_within_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "a file"
    blocked.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    runners = LibraryFreeRunners(EvaluationSettings())
    runners.start(DeviceKind.CUDA, HERE.model_copy(update={"layers": (NAMESPACES,)}), kept_environment(), early=True)
    reach, because = await runners.least(Reach.OWN)
    assert reach is Reach.ALL and "could not be replaced" in (because or "")
    await runners.close()


@needs_namespaces
async def test_a_device_that_does_not_work_with_the_copies_leaves_all_within_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(
        library_free, "model_of", lambda _kind: replace(model_of(DeviceKind.CPU), libraries_removable=True)
    )
    runners = LibraryFreeRunners(EvaluationSettings())
    runners.start(DeviceKind.CUDA, HERE, kept_environment(), early=True)
    reach, because = await runners.least(Reach.OWN)
    assert reach is Reach.ALL and "computes all the same" in (because or "")  # as the host does
    await runners.close()


@needs_namespaces
async def test_that_it_works_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for check in ("this", "no.such.module"):
        monkeypatch.setattr(library_free, "_CHECK", check)
        runners = LibraryFreeRunners(EvaluationSettings())
        runners.start(DeviceKind.CUDA, HERE, kept_environment(), early=True)
        assert await runners.least(Reach.OWN) == (Reach.OWN, None)
        await runners.close()


@needs_namespaces
async def test_one_who_does_not_wait_any_longer_keeps_nobody_else_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(library_free, "_CHECK", "this")
    runners = LibraryFreeRunners(EvaluationSettings())
    runners.start(DeviceKind.CUDA, HERE, kept_environment(), early=True)
    waits = asyncio.create_task(runners.least(Reach.OWN))
    await asyncio.sleep(0)
    waits.cancel()
    assert await runners.least(Reach.OWN) == (Reach.OWN, None)
    await runners.close()


@needs_namespaces
async def test_whoever_ends_at_once_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    runners = LibraryFreeRunners(EvaluationSettings())
    runners.start(DeviceKind.CUDA, HERE, kept_environment(), early=True)
    await asyncio.sleep(0.5)
    await runners.close()


async def test_who_only_asks_for_devices_makes_no_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    runners = LibraryFreeRunners(EvaluationSettings())
    runners.start(DeviceKind.CUDA, HERE, kept_environment(), early=False)
    await asyncio.sleep(0.1)
    await runners.close()
    assert list(tmp_path.iterdir()) == []
