"""samples.csv: what each column holds, of samples that came far and of those that did not."""

from __future__ import annotations

import csv
from pathlib import Path

from support.run_folder import PRICED, RunFolder, correct, incorrect, run_config, sample_run

from hkbench.records import SampleKey, Stage, StageTime, Usage
from hkbench.records.trust import Work
from hkbench.report.samples import SampleRow, sample_rows
from hkbench.report.write import write_reports
from hkbench.store.reader import read_run


def rows(run: RunFolder) -> list[dict[str, str]]:
    write_reports(run.root)
    return list(csv.DictReader(run.paths.samples.read_text().splitlines()))


def test_a_row_a_sample_in_the_order_of_the_plan(tmp_path: Path) -> None:
    run = sample_run(tmp_path)
    found = rows(run)
    assert list(found[0]) == list(SampleRow.model_fields)
    keys = [(one["problem"], one["attempt"], one["sample"]) for one in found]
    assert keys == sorted(keys) and len(keys) == 14
    assert [one["outcome"] for one in found[:6]] == ["faster", "wrong", "wrong", "wrong", "faster", "slower"]
    assert (found[0]["speedup"], found[0]["low"], found[0]["high"]) == ("2.0", "1.8", "2.2")
    assert (found[0]["baseline_ms"], found[0]["candidate_ms"]) == ("1.0", "0.5")
    assert (found[1]["stage"], found[1]["kind"], found[1]["speedup"]) == ("build", "build_error", "")
    assert found[-1]["message"] == "died by SIGSEGV in forward"
    assert [found[0][f"tokens_{kind}"] for kind in ("input", "output", "reasoning")] == ["100", "50", "20"]
    assert found[0]["tokens_cached_input"] == ""


def test_everything_that_is_known_of_a_sample(tmp_path: Path) -> None:
    facts = PRICED.model_copy(update={"weak": {"1_A": ("zeros",), "2_B": ()}})
    run = RunFolder(tmp_path, run_config(("1_A", "2_B")), facts=facts)
    run.start()
    run.decided("1_A", 1, "category", "memory")
    run.prompted("1_A", "gemm.txt")
    whole = correct("1_A", 2.0)
    stages = (StageTime(stage=Stage.BUILD, seconds=1.5), StageTime(stage=Stage.TIME, seconds=0.25))
    work = Work(own=0.75, pytorch=0.25, library=0.0, source="kineto")
    noted = whole.conditions.model_copy(update={"warnings": ("noisy", "hot"), "candidate_sha256": "a" * 64})
    whole = whole.model_copy(update={"stages": stages, "work": work, "conditions": noted})
    first = run.sample("1_A", 1, 1, whole, Usage(input=10, output=5))
    run.paths.problem("1_A").sample(1, 1).code.write_text("x = 1\n")
    run.prompted("1_A", "gemm.txt", 2, parent=first)
    run.sample("1_A", 2, 1, whole.model_copy(update={"copy_of": first, "stages": ()}))
    run.asked("2_B", 1, 1)
    one, copy, open_ = rows(run)
    said = {
        "level": "1", "category": "memory", "template": "gemm", "status": "fast", "language": "cpp", "own": "0.75",
        "model": "test-model", "cost": "20.0", "currency": "XTS", "replayed": "false", "finish_reason": "stop",
        "seconds_model": "2.5", "seconds_build": "1.5", "seconds_time": "0.25", "seconds_run": "",
        "seconds_evaluation": "4.0", "code_sha256": "a" * 64, "parent": "", "copy_of": "",
        "path": "1_A/attempt_1/sample_1", "code": "1_A/attempt_1/sample_1/code.py", "weak": "true",
        "warnings": "noisy | hot",
    }  # fmt: skip
    assert {name: one[name] for name in said} == said
    assert (copy["parent"], copy["copy_of"], copy["seconds_build"], copy["code"]) == ("1/1", "1/1", "", "")
    known = {name: value for name, value in open_.items() if value}
    assert known == {
        "problem": "2_B", "level": "1", "attempt": "1", "sample": "1", "outcome": "not_judged", "currency": "XTS",
        "path": "2_B/attempt_1/sample_1", "weak": "false",
    }  # fmt: skip


def test_a_problem_that_was_not_audited_is_neither_weak_nor_strong(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.sample("1_ReLU", 1, 1, incorrect("1_ReLU"))
    (row,) = sample_rows(read_run(run.paths))
    assert row.weak is None
    assert row.path == str(run.paths.problem("1_ReLU").sample(1, 1).root.relative_to(tmp_path))
    assert SampleKey(problem=row.problem, attempt=row.attempt, sample=row.sample).problem == "1_ReLU"
