"""The fork servers of runners that see no library's device code."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.isolation import runner_layers, surveyed

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
