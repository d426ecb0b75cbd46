"""What the cards of a run did, by its journal."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.run_folder import FACTS, RunFolder, correct, incorrect, run_config

from hkbench.records import (
    CardCheck,
    CardFailed,
    CardJoined,
    CardsChecked,
    DeviceKind,
    DevicePlace,
    Interval,
    NodeFacts,
    SlotTimes,
    Stage,
    StageTime,
    VerdictReached,
)
from hkbench.report.build import detail
from hkbench.report.cards import rows
from hkbench.report.format import duration
from hkbench.report.model import Report
from hkbench.report.page.render import render_page
from hkbench.report.text import render_text
from hkbench.store.reader import read_run

NAME = "1_ReLU"
NODE = NodeFacts(name="a", host="host-a", kind=DeviceKind.CPU, cards=0, cores=2, decisive={})
A, B = (DevicePlace(index=i, name=f"a CPU, {name}", host=f"host-{name}") for i, name in enumerate("ab"))


def judged(folder: RunFolder, sample: int, device: int, lent: float) -> None:
    """A verdict that a card was lent for, of which half a second is timing."""
    key = folder.asked(NAME, 1, sample)
    folder.answered(key)
    verdict = correct(NAME, 2.0).model_copy(update={"stages": (StageTime(stage=Stage.TIME, seconds=0.5),)})
    path = folder.paths.problem(NAME).sample(1, sample).result
    path.write_text(verdict.model_dump_json())
    now = folder.tick()
    turns = SlotTimes(asked=now, building=now, loaded=now, device=device, lent=now - lent, returned=now)
    folder.emit(VerdictReached.of(key, verdict, turns).model_copy(update={"time": now}))


def report_of(folder: RunFolder) -> Report:
    return detail(read_run(folder.paths))


def on_cluster(root: Path) -> RunFolder:
    facts = FACTS.model_copy(update={"nodes": (NODE, NODE)})
    return RunFolder(root, run_config((NAME,), samples=4), facts=facts)


def test_time_failures_and_efficiency_of_each_card(tmp_path: Path) -> None:
    folder = on_cluster(tmp_path)
    folder.start(devices=(A, B))
    judged(folder, 1, 0, lent=2.0)
    judged(folder, 2, 0, lent=1.0)
    judged(folder, 3, 1, lent=1.5)
    for left_out in (False, True):
        folder.emit(CardFailed(time=folder.tick(), place=B, message="its process was killed", left_out=left_out))
    folder.close()
    found = report_of(folder).cards
    assert found is not None
    first, second = found.cards
    assert (first.host, first.verdicts, first.lent_seconds, first.timed_seconds) == ("host-a", 2, 3.0, 1.0)
    assert (second.verdicts, second.failures, second.left_out) == (1, 2, "its process was killed")
    assert first.present_seconds == second.present_seconds > 3.0
    assert first.busy == pytest.approx(3.0 / first.present_seconds)
    assert found.efficiency == pytest.approx(4.5 / (2 * first.present_seconds))


def test_the_cards_of_a_host_have_their_sum_behind_them(tmp_path: Path) -> None:
    folder = on_cluster(tmp_path)
    second = A.model_copy(update={"index": 2})
    folder.start(devices=(A, B, second.model_copy(update={"uuid": "GPU-2"})))
    judged(folder, 1, 0, lent=2.0)
    judged(folder, 2, 1, lent=1.0)
    judged(folder, 3, 2, lent=1.5)
    folder.close()
    found = report_of(folder).cards
    assert found is not None
    first, other, both, alone = rows(found)
    assert [row[1] for row in (first, other, both, alone)] == ["host-a"] * 3 + ["host-b"]
    assert both[2] == "2" and both[3] == duration(3.5) and alone[3] == duration(1.0)


def test_a_card_is_known_again_under_another_number(tmp_path: Path) -> None:
    folder = on_cluster(tmp_path)
    folder.start(devices=(A, B))
    judged(folder, 1, 1, lent=1.0)
    folder.tick(1000.0)  # between sessions: in nobody's time
    folder.start(resumed=True, devices=(B.model_copy(update={"index": 0}),))
    judged(folder, 2, 0, lent=1.0)
    folder.close()
    found = report_of(folder).cards
    assert found is not None
    assert [(card.name, card.verdicts) for card in found.cards] == [(A.name, 0), (B.name, 2)]
    assert found.cards[0].present_seconds < found.cards[1].present_seconds < 100.0


def test_a_card_that_came_later_and_one_that_never_did(tmp_path: Path) -> None:
    folder = on_cluster(tmp_path)
    folder.start(devices=(A,))
    unopened = DevicePlace(index=1, name="b", host="host-b")
    folder.emit(CardFailed(time=folder.tick(), place=unopened, message="no compiler", left_out=True))
    folder.tick(50.0)
    folder.emit(CardJoined(time=folder.tick(), place=B.model_copy(update={"index": 2, "name": "a CPU, c"})))
    judged(folder, 1, 2, lent=1.0)
    folder.close()
    found = report_of(folder).cards
    assert found is not None
    early, never, late = found.cards
    assert (never.busy, never.present_seconds, never.failures) == (None, 0.0, 1)
    assert late.verdicts == 1 and late.present_seconds < early.present_seconds - 50.0


def test_how_far_cards_differ_is_shown_and_warned_of(tmp_path: Path) -> None:
    folder = on_cluster(tmp_path)
    folder.start(devices=(A, B))
    equal = Interval(value=1.0, low=0.99, high=1.01)
    checks = tuple(
        CardCheck(device=place.index, name=place.name, seconds=Interval(value=t, low=t, high=t), ratio=equal)
        for place, t in ((A, 1.0e-3), (B, 1.05e-3))
    )
    folder.emit(CardsChecked(time=folder.tick(), problem=NAME, cards=checks))
    folder.close()
    report = report_of(folder)
    found = report.cards
    assert found is not None and found.spread == pytest.approx(0.05)
    assert [card.equals_seconds.value for card in found.cards if card.equals_seconds] == [1.0e-3, 1.05e-3]
    assert sum(line.startswith("warning") for line in found.checked) == 1
    for shown in (render_text(report), render_page(report, folder.paths)):
        assert found.checked[0] in shown and A.name in shown


def test_a_run_on_one_device_says_nothing_of_cards(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, run_config((NAME,)))
    folder.start(devices=(A,))
    folder.sample(NAME, 1, 1, incorrect(NAME))
    folder.close()
    assert report_of(folder).cards is None
