"""Measurements of one source that contradict each other."""

from __future__ import annotations

from pathlib import Path

from support.run_folder import RunFolder, correct, run_config

from hkbench.records import SampleKey, Verdict
from hkbench.report.build import detail
from hkbench.report.disagreements import disagreements, warnings_of
from hkbench.store.reader import read_run

NAME = "1_ReLU"


def of_code(code: str, speedup: float, copy_of: SampleKey | None = None) -> Verdict:
    found = correct(NAME, speedup)
    conditions = found.conditions.model_copy(update={"candidate_sha256": code * 64})
    return found.model_copy(update={"conditions": conditions, "copy_of": copy_of})


def test_intervals_of_one_source_that_exclude_each_other(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, run_config((NAME,), samples=3, attempts=2))
    folder.start()
    slow = folder.sample(NAME, 1, 1, of_code("a", 1.0))
    folder.sample(NAME, 1, 2, of_code("b", 2.0))
    folder.sample(NAME, 1, 3, of_code("b", 2.1))  # within each other's intervals
    folder.sample(NAME, 2, 1, of_code("a", 3.0))
    folder.sample(NAME, 2, 2, of_code("b", 9.0, copy_of=slow))  # no measurement of its own
    run = read_run(folder.paths)
    (found,) = disagreements(run)
    assert (found.problem, found.slower.attempt, found.slower.sample) == (NAME, 1, 1)
    assert (found.faster.attempt, found.faster.sample, found.faster.speedup.value) == (2, 1, 3.0)
    assert "1.00x [0.90, 1.10] (sample 1.1)" in warnings_of([found])[0]
    report = detail(run)
    assert report.disagreements == (found,)
    copies = [sample.copy_of for sample in report.problems[0].samples if sample.copy_of is not None]
    assert [(place.attempt, place.sample) for place in copies] == [(1, 1)]
