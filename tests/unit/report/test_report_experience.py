"""A report says that a run asked earlier ones, and what it got."""

from __future__ import annotations

from pathlib import Path

from support.run_folder import FACTS, RunFolder, run_config

from hkbench.records import (
    ExperienceFacts,
    ExperienceRecalled,
    Hint,
    HintKind,
    PromptRendered,
    RecallKind,
    Remedy,
    Source,
)
from hkbench.report.build import detail
from hkbench.store.reader import read_run

NAME = "1_ReLU"
REMEDY = Remedy(text="use it", source=Source(run="a", problem=NAME, attempt=2, sample=1), helped=3, tried=4)


def test_a_run_without_an_experience_says_nothing(tmp_path: Path) -> None:
    report = detail(read_run(RunFolder(tmp_path).paths))
    assert report.experience is None
    assert not [line for line in report.headline if "experience" in line]


def test_a_run_with_one_counts_what_it_was_told(tmp_path: Path) -> None:
    config = run_config((NAME,)).model_copy(update={"experience": "/e.db", "hold_out": "^3_"})
    content = ExperienceFacts(digest="abc", bytes=1 << 20, runs=12)
    run = RunFolder(tmp_path, config, facts=FACTS.model_copy(update={"experience": content}))
    run.start()
    for what, remedies in ((RecallKind.REMEDIES, (REMEDY,)), (RecallKind.KERNEL, ())):
        run.emit(ExperienceRecalled(time=run.tick(), problem=NAME, what=what, about="f", remedies=remedies))
    for attempt, kind in ((2, HintKind.REMEDY), (3, HintKind.RULE)):
        hints = (Hint(kind=kind, text="use it"),)
        run.emit(
            PromptRendered(
                time=run.tick(), problem=NAME, attempt=attempt, template="t", sha256="0" * 64, hints=hints
            )
        )  # fmt: skip
    report = detail(read_run(run.paths))
    found = report.experience
    assert found is not None and found.content == content
    assert (found.asked, found.kernels, found.remedies, found.moves, found.prompts) == (2, 0, 1, 0, 1)
    assert found.pitfalls == 0
    assert "12 runs" in report.headline[-1] and "^3_" in report.headline[-1]
