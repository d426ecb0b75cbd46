"""The fork servers of runners that see no library's device code."""

from __future__ import annotations

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
        (DeviceKind.ROCM, Track.OWN, HERE),
        (DeviceKind.CUDA, Track.ANY, HERE),
        (DeviceKind.CUDA, Track.OWN, ALONE),
    ],
)
async def test_where_there_are_none_all_is_within_reach(kind: DeviceKind, track: Track, isolation: Isolation) -> None:
    runners = LibraryFreeRunners(EvaluationSettings(track=track))
    runners.start(kind, isolation, {})
    assert await runners.least() is Reach.ALL
    assert runners.reason
    await runners.close()


@needs_namespaces
async def test_one_server_for_each_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(library_free, "_CHECK", "this")  # there is no GPU here that could work with the copies
    runners = LibraryFreeRunners(EvaluationSettings())
    runners.start(DeviceKind.CUDA, HERE, kept_environment())
    try:
        assert await runners.least() is Reach.OWN
        assert await runners.least(Reach.SIMPLE) is Reach.SIMPLE
        assert await runners.least(Reach.ALL) is Reach.ALL
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
    runners.start(DeviceKind.CUDA, HERE.model_copy(update={"layers": (NAMESPACES,)}), kept_environment())
    assert await runners.least() is Reach.ALL
    assert "could not be replaced" in (runners.reason or "")
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
    runners.start(DeviceKind.CUDA, HERE, kept_environment())
    assert await runners.least() is Reach.ALL
    assert "computes all the same" in (runners.reason or "")  # as the host does
    await runners.close()


@needs_namespaces
async def test_that_it_works_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for check in ("this", "no.such.module"):
        monkeypatch.setattr(library_free, "_CHECK", check)
        runners = LibraryFreeRunners(EvaluationSettings())
        runners.start(DeviceKind.CUDA, HERE, kept_environment())
        assert await runners.least() is Reach.OWN
        await runners.close()
