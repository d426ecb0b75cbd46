"""A search and a batch on a real Ray cluster of two nodes of this machine, one of which dies in the middle."""

from __future__ import annotations

import importlib.util
import secrets
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import doors
from support.ray_networks import possible, ray_networks
from support.ray_nodes import RayNodes, ray_nodes

from hkbench.records import (
    CardFailed,
    CardsChecked,
    GenerationStarted,
    IsolationLevel,
    RunClosed,
    RunStarted,
    StageEntered,
    Status,
    Verdict,
    VerdictReached,
)
from hkbench.report.build import detail
from hkbench.store.layout import RunPaths
from hkbench.store.reader import read_run, read_run_file

pytestmark = [
    pytest.mark.slow,
    pytest.mark.alone,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray (pip install 'hkbench[cluster]')"),
]

NAMES = ("1_One", "2_Two", "3_Three")
MOVES_WITHIN = 30.0  #: seconds, until work of a node that is gone is at another one
SAMPLES = 2
SPEC = doors.ROOT / "kernels" / "column_sum_cpp.json"
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    with ray_nodes(TOKEN, "left", "right") as found:
        yield found


def bench(root: Path) -> tuple[object, ...]:
    """Three problems with a right and a wrong candidate each."""
    problems, replies = root / "problems", root / "replies"
    for addend, name in enumerate(NAMES, start=1):
        doors.problem(problems, name, addend)
        doors.reply(replies, name, 1, 1, doors.fenced(doors.fast(addend)))
        doors.reply(replies, name, 1, 2, doors.fenced(doors.wrong(addend)))
    fixed = (1, 3, "--problems", problems, "--replay", replies, "--device", "cpu", "--attempts", 1)
    return (*fixed, "--samples", SAMPLES, *doors.QUICK)


def finished(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Return what a command printed; one that does not end would keep the nodes from the next test."""
    try:
        return process.communicate(timeout=doors.LIMIT)
    finally:
        process.kill()


def verdicts(results: Path) -> dict[tuple[str, int], Verdict]:
    found = {}
    for name in NAMES:
        for sample in range(1, SAMPLES + 1):
            path = RunPaths(results).problem(name).sample(1, sample).result
            found[name, sample] = Verdict.model_validate_json(path.read_bytes())
    return found


def test_a_search_without_a_model_on_checked_cards(tmp_path: Path, nodes: RayNodes) -> None:
    chosen = ("--input", SPEC, "--outdir", tmp_path, "--no-llm", "--device", "cpu", "--budget-builds", 2)
    where = ("--cluster", nodes.address, "--check-cards")
    process = doors.start_hkbench("optimize", *chosen, *where, *doors.QUICK, env=TOKEN)
    _, said = finished(process)
    assert process.returncode == 0, said
    events = doors.events(tmp_path / "run")
    (checked,) = [event for event in events if isinstance(event, CardsChecked)]
    assert [card.device for card in checked.cards] == [0, 1] and checked.spread is not None
    assert [event.key.attempt for event in events if isinstance(event, VerdictReached)] == [1, 2]
    found = detail(read_run(RunPaths(tmp_path / "run"))).cards
    assert found is not None and sum(card.verdicts for card in found.cards) == 2


def test_a_node_dies_in_the_middle(tmp_path: Path, nodes: RayNodes) -> None:
    words, results = bench(tmp_path), tmp_path / "results"
    process = doors.start(
        "run_batch", *words, "--results", results, "--cluster", nodes.address, "--display", "json", env=TOKEN
    )
    doors.wait_for(RunPaths(results).journal, '"device":0', process)
    killed = time.time()
    nodes.remove("left")
    printed, said = finished(process)
    assert process.returncode == 0, said
    assert all(line.startswith("{") for line in printed.splitlines())

    events = doors.events(results)
    reached = Counter(event.key for event in events if isinstance(event, VerdictReached))
    assert set(reached.values()) == {1} and len(reached) == len(NAMES) * SAMPLES
    assert set(Counter(event.key for event in events if isinstance(event, GenerationStarted)).values()) == {1}
    last = events[-1]
    assert isinstance(last, RunClosed) and last.complete
    assert "left failed" in said or "left is gone" in said
    assert {event.place.index for event in events if isinstance(event, CardFailed)} == {0}

    ended = {event.key for event in events if isinstance(event, VerdictReached) and event.time < killed}
    moved = [e.time for e in events if isinstance(e, StageEntered) and e.time > killed and e.key not in ended]
    assert min(moved) - killed < MOVES_WITHIN

    for (_, sample), verdict in verdicts(results).items():
        assert (verdict.status is Status.INCORRECT) == (sample == 2)
        assert verdict.conditions.host and verdict.conditions.isolation.level is IsolationLevel.FULL
    (started,) = [event for event in events if isinstance(event, RunStarted)]
    assert [place.index for place in started.devices] == [0, 1] and all(place.host for place in started.devices)
    assert [node.name for node in read_run_file(RunPaths(results)).facts.nodes] == ["left", "right"]


@pytest.mark.parametrize("seconds", [None, 8.0], ids=["for good", "for 8 s"])
def test_a_node_is_cut_off_in_the_middle(seconds: float | None, tmp_path: Path) -> None:
    if not possible():  # not asked when tests are collected: it makes a network to find out
        pytest.skip("networks can be made by root alone, with `ip` (iproute2)")
    words, results = bench(tmp_path), tmp_path / "results"
    with ray_networks(TOKEN, "left", "right") as nodes:
        call = ("--results", results, "--cluster", nodes.address, "--display", "json")
        process = doors.start("run_batch", *words, *call, env=TOKEN)
        doors.wait_for(RunPaths(results).journal, '"device":0', process)
        cut = time.time()
        nodes.cut("left")
        if seconds is not None:
            time.sleep(seconds)
            nodes.mend("left")
        _, said = finished(process)
    assert process.returncode == 0, said
    events = doors.events(results)
    reached = Counter(event.key for event in events if isinstance(event, VerdictReached))
    assert set(reached.values()) == {1} and len(reached) == len(NAMES) * SAMPLES
    assert set(Counter(event.key for event in events if isinstance(event, GenerationStarted)).values()) == {1}
    assert all((verdict.status is Status.INCORRECT) == (key[1] == 2) for key, verdict in verdicts(results).items())
    if seconds is None:
        lost = [event for event in events if isinstance(event, CardFailed)]
        assert {event.place.index for event in lost} == {0} and lost[0].time - cut < MOVES_WITHIN


def test_a_cluster_that_obeys_everybody_is_refused(tmp_path: Path) -> None:
    with ray_nodes({"RAY_AUTH_MODE": "disabled"}) as nodes:
        token = {"RAY_AUTH_TOKEN": secrets.token_hex(32)}
        done = doors.run("run_batch", *bench(tmp_path), "--cluster", nodes.address, env=token)
    assert done.returncode == 69 and "RAY_AUTH_MODE=token" in done.stderr
