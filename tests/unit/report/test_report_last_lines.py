"""What a batch prints at its end."""

from __future__ import annotations

from pathlib import Path

from support.run_folder import RunFolder, correct, incorrect, run_config

from hkbench.report.build import detail
from hkbench.report.last_lines import last_lines
from hkbench.store.reader import read_run


def test_the_result_is_said_where_the_run_ends(tmp_path: Path) -> None:
    names = ("1_ReLU", "2_Sum", "3_Max")
    folder = RunFolder(tmp_path, run_config(names, strategy="staged"))
    folder.start()
    for name, category in zip(names, ("fusion", "fusion", "memory"), strict=True):
        folder.begin(name)
        folder.decided(name, 1, "category", category)
    folder.sample("1_ReLU", 1, 1, correct("1_ReLU", 2.0))
    folder.sample("1_ReLU", 1, 2, correct("1_ReLU", 1.9))
    folder.sample("2_Sum", 1, 1, incorrect("2_Sum"))
    report = detail(read_run(folder.paths))
    lines = [line.partition(": ") for line in last_lines(report, Path("results"))]
    said = {name: text for name, _, text in lines}
    assert [name for name, _, _ in lines] == [
        "result",
        "solved",
        "best",
        "category",
        "category",
        "spent",
        "time",
        "report",
    ]
    assert said["solved"] == "1 of 3 problems · faster 1 · on a par 0 · slower 0 · wrong 1 · not judged 1"
    assert said["best"] == "1_ReLU 2.00x [1.80, 2.20]"
    assert [text for name, _, text in lines if name == "category"] == [
        "fusion: 2 problems, 1 solved",
        "memory: 1 problem, 0 solved",
    ]
    assert said["report"].endswith("report.html")
