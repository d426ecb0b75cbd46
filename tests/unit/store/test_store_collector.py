"""The cycle collector is as it was, whatever happens in between."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from hkbench.store.collector import collector_paused


@pytest.fixture(autouse=True)
def as_found() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.enable()
    yield
    if not enabled:
        gc.disable()


@collector_paused()
def failing() -> None:
    with collector_paused():
        assert not gc.isenabled()
    assert not gc.isenabled()
    raise ValueError("bad")


def test_it_rests_until_the_outer_end_and_after_an_error() -> None:
    with pytest.raises(ValueError, match="bad"):
        failing()
    assert gc.isenabled()


def test_who_has_turned_it_off_finds_it_off() -> None:
    @collector_paused()
    def read() -> bool:
        return gc.isenabled()

    assert not read() and not read() and gc.isenabled()
    gc.disable()
    assert not read() and not gc.isenabled()
