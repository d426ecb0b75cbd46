"""The best so far in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.monitor_seat import seat
from support.run_folder import compiled, correct, incorrect
from support.search_runs import BLOCKS, NAME, search_run, searched

from hkbench.monitor.curve import curve_line
from hkbench.store.reader import read_run
from hkbench.store.samples import ProblemState


def state(run: object) -> ProblemState:
    return read_run(run.paths).state.problems[NAME]  # type: ignore[attr-defined]


def test_a_sign_an_attempt_and_a_cross_for_a_failure(tmp_path: Path) -> None:
    line = curve_line(state(search_run(tmp_path)), 80)
    assert line is not None and line.plain == "best so far ▁▅×▅█ 1.00x to 4.00x"


@pytest.mark.parametrize("width", [30, 40, 60])
def test_many_attempts_share_the_room(tmp_path: Path, width: int) -> None:
    verdicts = [(correct(NAME, 1.0 + number / 100), number or None, BLOCKS) for number in range(70)]
    line = curve_line(state(searched(tmp_path, *verdicts, (incorrect(NAME), 1, BLOCKS))), width)
    assert line is not None and len(line.plain) == width
    assert "▁" in line.plain and "█" in line.plain and line.plain.endswith("1.00x to 1.69x")


def test_without_several_attempts_or_times_there_is_none(tmp_path: Path) -> None:
    assert curve_line(ProblemState(), 80) is None
    assert curve_line(state(searched(tmp_path / "one", (correct(NAME, 1.0), None, "start"))), 80) is None
    built = searched(tmp_path / "built", *[(compiled(NAME), None, "start")] * 4)
    assert curve_line(state(built), 80) is None


async def test_the_problems_screen_has_it_above_the_tree(tmp_path: Path) -> None:
    async with seat(search_run(tmp_path).root) as person:
        await person.press("enter")
        lines = person.screen()
    assert lines[1] == "best so far ▁▅×▅█ 1.00x to 4.00x"
    assert "change_block_sizes" in lines[3]
