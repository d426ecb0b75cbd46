from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.run_folder import RunFolder, run_config, sample_run

from hkbench.monitor.live import Watch
from hkbench.monitor.selection import Order, Selection
from hkbench.records import FailureKind
from hkbench.store.state import RunState


def state_of(run: RunFolder) -> RunState:
    watch = Watch(run.paths)
    watch.look()
    assert watch.state is not None
    return watch.state


def test_names_are_sorted_by_their_numbers(tmp_path: Path) -> None:
    state = state_of(RunFolder(tmp_path, run_config(("10_Max", "2_Sum", "1_Add"))))
    assert Selection(order=Order.PLAN).names(state) == ["10_Max", "2_Sum", "1_Add"]
    assert Selection(order=Order.NAME).names(state) == ["1_Add", "2_Sum", "10_Max"]


def test_what_needs_a_look_comes_first(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_Waiting", "2_Busy", "3_Lost", "4_Begun")))
    run.start()
    run.begin("2_Busy")
    run.asked("2_Busy", 1, 1)
    run.begin("3_Lost")
    run.end("3_Lost", error="the GPU is gone")
    run.begin("4_Begun")
    assert Selection(order=Order.STATE).names(state_of(run)) == ["3_Lost", "2_Busy", "4_Begun", "1_Waiting"]


def test_a_bad_pattern_leaves_the_old_one(tmp_path: Path) -> None:
    selection = Selection(pattern="sum")
    with pytest.raises(re.error):
        selection.search("(")
    assert selection.names(state_of(sample_run(tmp_path))) == ["2_Sum"]


def test_kinds_and_categories_with_their_counts(tmp_path: Path) -> None:
    run = sample_run(tmp_path)
    for name, template in (("1_ReLU", "a.txt"), ("2_Sum", "b.txt"), ("3_Softmax", "b.txt")):
        run.prompted(name, template)
    state = state_of(run)
    kinds = Selection().kinds(state)
    assert kinds == [(FailureKind.CRASH, 4, 1), (FailureKind.BUILD_ERROR, 2, 2), (FailureKind.WRONG_VALUES, 1, 1)]
    assert Selection().categories(state) == [("b", 2), ("a", 1)]


def test_what_is_shown_in_a_line() -> None:
    assert Selection().describe(4, 4) == "4 problems · order: plan"
    selection = Selection(pattern="\x1b[2Jx", kind=FailureKind.CRASH)
    assert selection.describe(1, 4) == "1 of 4 problems · order: plan · name: x · failure: crash"
