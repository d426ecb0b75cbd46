"""Which columns fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.run_folder import RunFolder, correct, incorrect, run_config

from hkbench.monitor.live import Watch
from hkbench.monitor.rows import Column, Layout
from hkbench.records import FailureKind, Stage, Usage
from hkbench.store.state import RunState

NAMES = tuple(f"{i}_Scaled_masked_softmax_fp32" for i in range(1, 101))


def run_of(root: Path, samples: int = 1, attempts: int = 1) -> RunFolder:
    """A hundred problems: one faster, one wrong, one at work, the others not begun."""
    run = RunFolder(root, run_config(NAMES, samples=samples, attempts=attempts))
    run.start()
    run.sample(NAMES[0], 1, 1, correct(NAMES[0], 2.0), Usage(input=100, output=20))
    run.sample(NAMES[1], 1, 1, incorrect(NAMES[1], FailureKind.WRONG_DTYPE, Stage.COMPARE))
    run.end(NAMES[1])
    run.begin(NAMES[2])
    run.entered(run.asked(NAMES[2], 1, 1), Stage.BUILD)
    return run


def state_of(run: RunFolder) -> RunState:
    watch = Watch(run.paths)
    watch.look()
    assert watch.state is not None
    return watch.state


def text(layout: Layout, state: RunState, index: int, now: float) -> str:
    parts = layout.row(NAMES[index], state.problems[NAMES[index]], now)
    return "".join(part for part, _ in parts)


@pytest.mark.parametrize(("width", "panels"), [(40, 1), (80, 1), (120, 2), (150, 2), (200, 3), (400, 4)])
def test_more_problems_than_rows_go_side_by_side(tmp_path: Path, width: int, panels: int) -> None:
    run = run_of(tmp_path)
    state = state_of(run)
    layout = Layout.of(state, NAMES, width - 2, rows=30, mark=2)
    assert layout.panels == panels
    assert (layout.panel + 2) * layout.panels <= width
    for index in range(4):
        assert len(text(layout, state, index, run.now)) <= layout.panel
    assert Layout.of(state, NAMES, width - 2, rows=100, mark=2).panels == 1


def test_a_wide_table_has_more_columns_and_whole_names(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    state = state_of(run)
    narrow, wide = (Layout.of(state, NAMES, width) for width in (80, 200))
    assert {Column.NOW, Column.INTERVAL} <= set(wide.columns) - set(narrow.columns)
    assert NAMES[99] in text(narrow, state, 99, run.now)
    assert text(narrow, state, 0, run.now).split()[1:4] == ["faster", "2.00x", "+"]
    assert text(narrow, state, 1, run.now).split()[1:] == ["wrong_dtype", "×"]
    assert text(narrow, state, 2, run.now + 7).split()[1:6] == ["1.1", "build", "7", "s", "▹"]
    assert text(wide, state, 0, run.now).split()[1:] == ["faster", "2.00x", "[1.80,", "2.20]", "+", "120"]
    assert text(wide, state, 2, run.now + 7).split()[1:] == ["▹", "1.1", "build", "7", "s"]


def test_attempts_that_are_not_needed_are_blank(tmp_path: Path) -> None:
    """And those still to come are dots, of a run that stopped as well."""
    run = run_of(tmp_path, samples=2, attempts=3)
    run.close(complete=False)
    state = state_of(run)
    layout = Layout.of(state, NAMES, 80)
    assert "+· ·· ··" in text(layout, state, 0, run.now)
    assert text(layout, state, 1, run.now).split()[1:] == ["wrong_dtype", "×"]
    assert "·· ·· ··" in text(layout, state, 9, run.now)


def test_a_failed_problem_looks_other_than_one_not_begun(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    state = state_of(run)
    layout = Layout.of(state, NAMES, 80)
    styles = [layout.row(name, state.problems[name], run.now)[0][1] for name in NAMES[:4]]
    assert len(set(styles[1:])) == 3  # wrong, at work, not begun
