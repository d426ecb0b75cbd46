"""Telling the passes from what came before them, and the record that comes of it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from profile_samples import owner

from hkbench.profile import ProfileUnreadable
from hkbench.profile.dispatches import (
    MAX_KERNELS,
    MAX_LAUNCHES,
    Dispatch,
    Run,
    last_passes,
    mean_counters,
    profile_of,
)
from hkbench.records import KernelProfile


def run(names: str, seconds: float | None = 1e-3) -> Run:
    launches = tuple(Dispatch(name, begin=number * 2e-3, seconds=seconds) for number, name in enumerate(names))
    return Run(Path("trace.csv"), launches)


@pytest.mark.parametrize(
    ("launches", "forwards", "expected"),
    [
        ("abab", 2, "abab"),
        ("ffabab", 2, "abab"),
        ("aaaa", 2, "aaaa"),
        ("faaa", 3, "aaa"),
        ("abcabcabc", 3, "abcabcabc"),
        ("xab", 1, "xab"),
    ],
)
def test_the_passes_are_the_end_that_repeats(launches: str, forwards: int, expected: str) -> None:
    notes: list[str] = []
    assert "".join(d.name for d in last_passes(run(launches), forwards, notes)) == expected
    assert notes == []


def test_passes_that_differ_are_averaged_and_noted() -> None:
    profile = profile_of("test", run("fabcab"), [], 2, owner, lambda *_: {})
    assert {use.name: use.calls for use in profile.kernels} == {"a": 1, "b": 1}
    assert "do not launch the same kernels" in profile.notes[0]


def test_the_wait_between_kernels_is_found() -> None:
    launches = tuple(Dispatch("k", begin=number * 10e-3, seconds=1e-3) for number in range(8))
    profile = profile_of("test", Run(Path("t"), launches), [], 2, owner, lambda *_: {})
    assert any("the GPU works 4.000 ms of 31.000 ms" in text for text in profile.findings)
    assert not profile_of("test", Run(Path("t"), launches), [], 2, owner, lambda *_: {}, gaps=False).findings[1:]


def test_many_launches_take_no_time() -> None:
    begin = time.perf_counter()
    last_passes(run("ab" * MAX_LAUNCHES + "c"), 3, [])
    assert time.perf_counter() - begin < 5


def test_what_differs_between_calls_is_left_out() -> None:
    launches = (
        Dispatch("k", seconds=1e-3, grid=(8, 1, 1), block=(64, 1, 1), counters={"a": 1.0, "b": 1.0}),
        Dispatch("k", seconds=1e-3, grid=(4, 1, 1), block=(64, 1, 1), counters={"a": 3.0}),
    )
    one = Run(Path("t"), launches)
    (use,) = profile_of("test", one, [one], 1, owner, lambda *_: {}).kernels
    assert (use.calls, use.grid, use.block) == (2, None, (64, 1, 1))
    assert use.counters == {"a": 2.0} == mean_counters(launches)


def test_a_profile_has_a_size() -> None:
    launches = tuple(Dispatch("\ud800\x1b" * 5000 + str(number), seconds=1e-3) for number in range(1000))
    profile = profile_of("test", Run(Path("t"), launches), [], 1, owner, lambda *_: {})
    assert len(profile.kernels) == MAX_KERNELS
    assert "936 shortest kernels are left out" in profile.notes[0]
    assert "\x1b" not in profile.kernels[0].name
    assert len(profile.model_dump_json()) < 200_000


def test_a_profile_without_times() -> None:
    with pytest.raises(ProfileUnreadable, match="gives no kernel a time"):
        profile_of("test", run("ab", None), [], 1, owner, lambda *_: {})


def test_profiles_of_earlier_runs_are_read() -> None:
    old = {
        "source": "torch.profiler (device kernels)",
        "kernels": [{"name": "k", "owner": "candidate", "calls": 1, "seconds": 0.001, "share": 1.0}],
        "seconds": 0.001,
        "findings": ["fuse them"],
    }
    profile = KernelProfile.model_validate_json(json.dumps(old))
    assert profile.kernels[0].counters == {}
    assert profile.kernels[0].grid is None
    assert KernelProfile.model_validate_json(profile.model_dump_json()) == profile
