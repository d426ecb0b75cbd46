from __future__ import annotations

import csv
from pathlib import Path

from support.run_folder import RunFolder, sample_run
from support.strategy_runs import judged_run

from hkbench.records import SampleKey
from hkbench.report.usage import CallRow
from hkbench.report.write import write_reports


def rows(run: RunFolder) -> list[dict[str, str]]:
    write_reports(run.root)
    return list(csv.DictReader(run.paths.usage.read_text().splitlines()))


def test_a_row_a_call_in_the_order_of_the_attempts(tmp_path: Path) -> None:
    found = rows(judged_run(tmp_path))
    assert list(found[0]) == list(CallRow.model_fields)
    assert [(row["attempt"], row["role"], row["call"], row["model"]) for row in found] == [
        ("1", "coder", "1", "test-model"),
        ("2", "judge", "1", "a-judge"),
        ("2", "judge", "2", "a-judge"),
        ("2", "coder", "1", "test-model"),
    ]
    assert [row["cost"] for row in found] == ["0.15", "0.022", "0.078", "0.26"]
    assert [row["input"] for row in found] == ["100", "10", "30", "200"]


def test_every_strategy_has_it_and_what_is_not_known_is_empty(tmp_path: Path) -> None:
    run = sample_run(tmp_path)
    run.answered(SampleKey(problem="1_ReLU", attempt=1, sample=3), replayed=True)
    run.asked("1_ReLU", 1, 4)
    found = rows(run)
    assert len(found) == 15, "a call without an answer has no row"
    assert (found[0]["cost"], found[0]["replayed"], found[0]["seconds"]) == ("", "false", "2.5")
    assert (found[2]["cost"], found[2]["replayed"], found[2]["output"]) == ("0.0", "true", "")
