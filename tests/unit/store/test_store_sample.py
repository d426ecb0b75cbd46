"""One sample of a run folder, whole."""

from __future__ import annotations

import json
from pathlib import Path

from support.run_folder import RunFolder, correct, incorrect

from hkbench.records import AttemptClosed, ExtractionRule, PromptRendered, SampleKey
from hkbench.store.layout import RunPaths
from hkbench.store.sample import parents, read_sample

NAME = "1_ReLU"


def _close(run: RunFolder, attempt: int, best: int | None) -> None:
    run.emit(AttemptClosed(time=run.tick(), problem=NAME, attempt=attempt, best_sample=best, status=None, speedup=None))


def _prompt(run: RunFolder, attempt: int, parent: SampleKey | None = None) -> None:
    run.emit(
        PromptRendered(time=run.tick(), problem=NAME, attempt=attempt, template="t", sha256="0" * 64, parent=parent)
    )


def _key(attempt: int, sample: int) -> SampleKey:
    return SampleKey(problem=NAME, attempt=attempt, sample=sample)


def test_the_parent_is_the_best_when_the_prompt_was_made(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    _prompt(run, 1)
    _close(run, 1, 2)
    _prompt(run, 2)
    _close(run, 1, 1)  # a resume that judged a lost verdict anew; the prompt of attempt 2 stands
    _close(run, 2, 1)
    assert parents(run.paths, NAME) == {2: _key(1, 2)}
    assert parents(run.paths, "2_Sum") == {}


def test_the_parent_that_the_prompt_names_counts(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    _prompt(run, 1)
    _close(run, 1, 2)
    _prompt(run, 2, _key(1, 2))
    _close(run, 2, 1)
    _prompt(run, 3, _key(1, 2))  # from the best so far
    assert parents(run.paths, NAME) == {2: _key(1, 2), 3: _key(1, 2)}


def test_all_parts(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.sample(NAME, 1, 2, incorrect(NAME))
    _close(run, 1, 2)
    _prompt(run, 2)
    run.sample(NAME, 2, 1, correct(NAME, 2.0))
    problem = run.paths.problem(NAME)
    problem.prompt(2).write_text("mend it")
    problem.sample(1, 2).code.write_text("before")
    files = problem.sample(2, 1)
    files.response.write_text("here it is")
    files.code.write_text("after")
    files.extraction.write_text(json.dumps({"rule": "only_block", "note": None}))
    found = read_sample(run.paths, _key(2, 1))
    assert found.parent == _key(1, 2)
    assert (found.prompt, found.reply, found.code, found.parent_code) == ("mend it", "here it is", "after", "before")
    assert found.rule is ExtractionRule.ONLY_BLOCK
    assert found.verdict == correct(NAME, 2.0)
    assert found.corrupt == ()
    problem.system(2).write_text("you know HIP")
    assert read_sample(run.paths, _key(2, 1)).prompt == "[system message]\nyou know HIP\n[user message]\nmend it"


def test_what_is_missing_is_none(tmp_path: Path) -> None:
    found = read_sample(RunPaths(tmp_path / "nowhere"), _key(1, 1))
    assert (found.parent, found.prompt, found.reply, found.code, found.rule, found.verdict) == (None,) * 6
    assert found.corrupt == ()


def test_a_corrupt_file_is_named(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.sample(NAME, 1, 1, correct(NAME, 2.0))
    files = run.paths.problem(NAME).sample(1, 1)
    files.result.write_text("{")
    files.extraction.write_text("[]")
    found = read_sample(run.paths, _key(1, 1))
    assert found.verdict is None and found.rule is None
    assert [text.partition(":")[0] for text in found.corrupt] == ["extraction.json", "result.json"]
