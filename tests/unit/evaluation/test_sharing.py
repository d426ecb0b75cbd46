"""Evaluations that share a device, in processes of their own: who is alone when, and what waits for what."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import torch

from hkbench.evaluation.sharing import PARTS, TIMES_FORWARD, DeviceShare

MEMORY = 1 << 20
AT_ONCE = 4
LARGE = torch.zeros(MEMORY // TIMES_FORWARD, dtype=torch.uint8)
MEDIUM = torch.zeros(MEMORY // TIMES_FORWARD // 2, dtype=torch.uint8)  #: takes as much as two of the usual evaluations
NOT_YET = 0.2  #: seconds in which something that may happen would have happened

_FORK = multiprocessing.get_context("fork")


class Evaluation:
    """Another evaluation on the device, which does what it is told and says when it is done."""

    def __init__(self, folder: Path) -> None:
        self._ours, theirs = _FORK.Pipe()
        self._process = _FORK.Process(target=_evaluate, args=(folder, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def begin(self, word: str) -> None:
        self._ours.send(word)

    def has_done(self, seconds: float = 10.0) -> bool:
        done = self._ours.poll(seconds)
        if done:
            self._ours.recv()
        return done

    def do(self, word: str) -> None:
        self.begin(word)
        assert self.has_done(), word

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


def _evaluate(folder: Path, told: Connection) -> None:
    share = DeviceShare(folder=folder)
    entered: list[Iterator[None]] = []

    def enter(make: Callable[[], object]) -> None:
        context = make()
        context.__enter__()  # type: ignore[attr-defined]
        entered.append(context)  # type: ignore[arg-type]

    while True:
        word = told.recv()
        match word:
            case "evaluation":
                enter(lambda: share.evaluation(AT_ONCE))
            case "evaluation alone":
                enter(lambda: share.evaluation(alone=True))
            case "alone":
                enter(share.alone)
            case "unused":
                enter(share.unused)
            case "draw little":
                enter(lambda: share.unused({"weight": LARGE}))
            case "need":
                share.need([LARGE, LARGE], MEMORY)
            case "need half":
                share.need(MEDIUM, MEMORY)
            case "pause":
                share.pause()
            case "leave":
                entered.pop().__exit__(None, None, None)  # type: ignore[attr-defined]
            case "fail":
                entered.pop().__exit__(ValueError, ValueError("it failed"), None)  # type: ignore[attr-defined]
        told.send(word)


@pytest.fixture
def evaluation(tmp_path: Path) -> Iterator[Callable[[], Evaluation]]:
    """Make evaluations on one device."""
    made: list[Evaluation] = []

    def make() -> Evaluation:
        made.append(Evaluation(tmp_path))
        return made[-1]

    yield make
    for one in made:
        one.kill()


@pytest.fixture
def two(evaluation: Callable[[], Evaluation]) -> tuple[Evaluation, Evaluation]:
    first, second = evaluation(), evaluation()
    first.do("evaluation")
    second.do("evaluation")
    return first, second


def test_one_is_timed_when_the_others_have_no_work_on_the_device(two: tuple[Evaluation, Evaluation]) -> None:
    first, second = two
    first.begin("alone")
    assert not first.has_done(NOT_YET)
    second.begin("pause")
    assert first.has_done() and not second.has_done(NOT_YET)
    first.do("leave")
    assert second.has_done()


def test_work_on_the_host_keeps_nobody_from_being_timed(two: tuple[Evaluation, Evaluation]) -> None:
    first, second = two
    second.do("unused")
    first.do("alone")
    second.begin("leave")
    assert not second.has_done(NOT_YET)
    first.do("leave")
    assert second.has_done()


def test_a_processor_that_draws_little_is_waited_for(two: tuple[Evaluation, Evaluation]) -> None:
    first, second = two
    second.do("draw little")
    first.begin("alone")
    assert not first.has_done(NOT_YET), "what a candidate does on the device while it is made disturbs nobody"
    second.do("leave")
    second.begin("pause")
    assert first.has_done()


def test_whoever_fails_while_it_is_timed_stays_alone_to_its_end(two: tuple[Evaluation, Evaluation]) -> None:
    first, second = two
    second.do("unused")
    first.do("alone")
    first.do("fail")
    second.begin("leave")
    first.do("pause")
    assert not second.has_done(NOT_YET), "a kernel of the candidate's may go on until it has been ended"
    first.do("leave")
    assert second.has_done()


def test_a_large_one_waits_for_the_others_to_end(
    two: tuple[Evaluation, Evaluation], evaluation: Callable[[], Evaluation]
) -> None:
    first, second = two
    first.begin("need")
    assert not first.has_done(NOT_YET)
    second.do("alone")
    second.do("leave")  # nobody waits for the device meanwhile
    third = evaluation()
    third.begin("evaluation")
    second.do("leave")
    assert first.has_done() and not third.has_done(NOT_YET)
    for word in ("alone", "leave", "pause", "leave"):
        first.do(word)
    assert third.has_done()


def test_one_of_half_the_memory_waits_for_half_of_the_others(
    two: tuple[Evaluation, Evaluation], evaluation: Callable[[], Evaluation]
) -> None:
    first, second = two
    third, fourth, fifth = (evaluation() for _ in range(3))
    third.do("evaluation")
    fourth.do("evaluation")
    fifth.begin("evaluation")
    assert not fifth.has_done(NOT_YET), f"{AT_ONCE} take all {PARTS} parts"
    first.begin("need half")  # it gives its own part back, and the fifth came before it
    assert fifth.has_done() and not first.has_done(NOT_YET)
    second.do("leave")
    assert not first.has_done(NOT_YET)
    third.do("leave")
    assert first.has_done()
    first.begin("alone")
    assert not first.has_done(NOT_YET), "two others are still there"
    for one in (fourth, fifth):
        one.begin("pause")
    assert first.has_done()


def test_two_large_ones_do_not_wait_for_each_other(two: tuple[Evaluation, Evaluation]) -> None:
    for one in two:
        one.begin("need")
    (first,) = (one for one in two if one.has_done(5 * NOT_YET))
    (second,) = {*two} - {first}
    first.do("leave")
    assert second.has_done()


def test_one_that_is_to_be_alone_has_the_device_for_itself(evaluation: Callable[[], Evaluation]) -> None:
    first, second = evaluation(), evaluation()
    first.do("evaluation alone")
    second.begin("evaluation")
    first.do("pause")
    assert not second.has_done(NOT_YET)
    first.do("leave")
    assert second.has_done()


def test_a_process_that_dies_keeps_nothing(two: tuple[Evaluation, Evaluation]) -> None:
    first, second = two
    second.do("unused")
    first.do("alone")
    second.begin("leave")
    first.kill()
    assert second.has_done()


def test_without_others_nothing_waits_and_no_time_counts_as_waited() -> None:
    share = DeviceShare()
    with share.evaluation(), share.unused(), share.alone():
        share.need([LARGE, LARGE], MEMORY)
        share.pause()
    assert share.waited == 0.0


def test_what_an_evaluation_waited_is_told_and_added_up(tmp_path: Path) -> None:
    told: list[float] = []
    share = DeviceShare(folder=tmp_path)
    with _held(tmp_path), share.evaluation():
        share.on_waited = told.append
        began = time.monotonic()
        with share.alone():
            took = time.monotonic() - began
    assert sum(told) == pytest.approx(share.waited, abs=0.1)
    assert NOT_YET < sum(told) <= took + 0.1


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Have another process use the device for twice as long as `NOT_YET`."""
    other = Evaluation(folder)
    other.do("evaluation")
    timer = threading.Timer(2 * NOT_YET, other.begin, ["leave"])
    timer.start()
    yield
    timer.join()
    other.kill()
