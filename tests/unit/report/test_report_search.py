"""What a search leaves: its story, the diffs, what moves brought."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.run_folder import RunFolder, compiled, correct, run_config
from support.search_runs import BLOCKS, NAME, search_run, searched

from hkbench.records import Contention, Extraction, ExtractionRule, KernelResources, MoveGains
from hkbench.report.search import trace
from hkbench.report.write import write_reports
from hkbench.store.reader import read_run


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return search_run(tmp_path)


def test_the_story_tells_the_way_to_the_best(run: RunFolder) -> None:
    write_reports(run.root)
    story = run.paths.problem(NAME).trace.read_text()
    way = [line for line in story.splitlines() if line[:2] in ("1.", "2.", "3.")]
    assert [line.split(" ")[1].rstrip(":") for line in way] == ["start", "change_block_sizes", "change_block_sizes"]
    rows = [line.split(" | ") for line in story.splitlines() if line.startswith("| ") and line[2].isdigit()]
    assert [row[1] for row in rows] == ["", "1", "2", "2", "2"]
    assert [row[5].strip(" |") for row in rows] == ["1.00x", "2.00x", "2.00x", "2.05x", "4.00x"]
    assert "build_error" in rows[2][4] and "all attempts are used" in story


def test_each_kernel_has_its_diff_and_the_start_none(run: RunFolder) -> None:
    write_reports(run.root)
    paths = run.paths.problem(NAME)
    assert paths.sample(2, 1).diff.read_text() == "--- 1.1\n+++ 2.1\n@@ -1 +1 @@\n-number = 1\n+number = 2\n"
    assert not paths.sample(1, 1).diff.exists()


def test_what_moves_brought(run: RunFolder) -> None:
    write_reports(run.root)
    found = MoveGains.model_validate_json(run.paths.moves.read_text())
    moves = {move.move: move for move in found.moves}
    blocks = moves["change_block_sizes"]
    assert (blocks.tried, blocks.failed, blocks.gained) == (2, 0, 2)
    assert blocks.mean_gain == pytest.approx(2.0)
    assert (moves["softmax_math_fusion"].failed, moves["softmax_math_fusion"].mean_gain) == (1, None)
    assert found.paths == {NAME: ("change_block_sizes", "change_block_sizes")}


def test_the_best_is_the_report_s_own(tmp_path: Path) -> None:
    busy = correct(NAME, 9.0).model_copy(update={"contention": Contention(reasons=("others were at work",))})
    run = searched(tmp_path, (correct(NAME, 1.0), None, "start"), (busy, 1, BLOCKS))
    report = write_reports(run.root)
    assert report.problems[0].best_attempt == 1
    assert "that of attempt 1, 1.00x" in run.paths.problem(NAME).trace.read_text()
    assert [one.led_to_best for one in report.problems[0].attempts] == [True, False]


def test_where_nothing_is_timed_there_is_a_story_too(tmp_path: Path) -> None:
    figures = (
        KernelResources(name="one", arch="gfx942", vgprs=40, agprs=8, scratch_bytes_per_lane=16),
        KernelResources(name="two", arch="gfx942", vgprs=4),
    )
    edited = compiled(NAME).model_copy(update={"resources": figures})
    run = searched(tmp_path, (compiled(NAME), None, "start"), (edited, 1, BLOCKS))
    [problem] = read_run(run.paths).problems
    assert "| 1 |  | start |  | compiled |  |" in trace(problem)
    assert f"| 2 | 1 | {BLOCKS} |  | compiled: 52 registers, 16 bytes of scratch |  |" in trace(problem)


def test_the_story_says_how_the_code_was_found(run: RunFolder) -> None:
    paths = run.paths.problem(NAME)
    note = "the whole file is taken, for the reply | is a diff that does not apply"
    found = {2: Extraction(rule=ExtractionRule.LAST_MODEL_NEW, source="", note=note)}
    found[4] = Extraction(rule=ExtractionRule.PROPOSED, source="", note="confirm")
    for attempt, extraction in found.items():
        text = extraction.model_dump_json(exclude={"source"})
        paths.sample(attempt, 1).extraction.write_text(text)
    write_reports(run.root)
    rows = [line.split(" | ") for line in paths.trace.read_text().splitlines() if line.startswith("| ")][2:]
    assert rows[1][3] == f"last_model_new: {note.replace('|', '/')}"
    assert rows[3][3] == "proposed" and rows[0][3] == ""


def test_other_strategies_have_none_of_it(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config((NAME,)))
    run.start()
    run.sample(NAME, 1, 1, correct(NAME, 2.0))
    run.close()
    write_reports(run.root)
    assert not run.paths.moves.exists() and not run.paths.problem(NAME).trace.exists()
