"""What readers say of further shapes: on how many a sample is right, and on which it is not."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from support.run_folder import RunFolder, correct, run_config

from hkbench.cli.verdicts import describe
from hkbench.monitor.verdict import _result
from hkbench.records import Failure, FailureKind, Interval, ShapeKind, ShapeResult, Shapes, Stage
from hkbench.report.page.sample import conditions
from hkbench.report.write import write_reports

DIED = Failure(stage=Stage.RUN, kind=FailureKind.CRASH, message="died")
FASTER = Interval(value=1.5, low=1.2, high=1.8)
SHAPES = Shapes(
    seed=7,
    results=(
        ShapeResult(constants={"rows": 1, "columns": 33}, kind=ShapeKind.NAMED, speedup=FASTER),
        ShapeResult(constants={"rows": 771}, kind=ShapeKind.RAGGED, failure=DIED),
    ),
    not_checked=("a third was not drawn",),
)
VERDICT = correct("1_ReLU", 2.0).model_copy(update={"shapes": SHAPES})
SAID = "right on 1 of 2 further shapes"


def test_a_verdict_says_on_which_it_is_right() -> None:
    assert (SHAPES.right, [one.constants for one in SHAPES.failed]) == (1, [{"rows": 771}])
    for text in (describe(VERDICT), str(dict(conditions(VERDICT))), str([*_result(VERDICT)])):
        assert SAID in text and "rows=771 (crash)" in text
    assert "1.50x" in describe(VERDICT) and "seed 7" in dict(conditions(VERDICT))["Further shapes"]
    assert "further shape" not in describe(correct("1_ReLU", 2.0))


def test_the_reports_count_them(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, run_config(("1_ReLU",)))
    run.start()
    run.sample("1_ReLU", 1, 1, VERDICT)
    run.close()
    write_reports(tmp_path)
    report = json.loads(run.paths.report_json.read_text())
    (sample,) = report["problems"][0]["samples"]
    failed = [{"constants": {"rows": 771}, "visible": False, "kind": "crash"}]
    assert sample["shapes"] == {"checked": 2, "right": 1, "failed": failed}
    assert SAID in " ".join(run.paths.report_text.read_text().split())
    with (tmp_path / "samples.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["shapes_checked"], row["shapes_right"]) == ("2", "1")
