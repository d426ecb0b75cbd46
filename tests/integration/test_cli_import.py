"""KernelBench's kernels imported, judged by run_batch.py, and exported again."""

from __future__ import annotations

import json
from pathlib import Path

from support import doors

from hkbench.cli.main import main


def test_there_and_back(tmp_path: Path) -> None:
    problems, theirs, replies, results = (tmp_path / name for name in ("problems", "theirs", "replies", "results"))
    theirs.mkdir()
    for number in (1, 2, 3):
        doors.problem(problems, f"{number}_P", number)
    (theirs / "level_1_problem_1_sample_0_kernel.py").write_text(doors.fast(1))
    (theirs / "level_1_problem_3_sample_0_kernel.py").write_text(doors.wrong(3))
    assert main(["import", "--kernelbench", str(theirs), str(replies), "--problems", str(problems)]) == 0
    done = doors.call(
        "run_batch", 1, 3, "--problems", problems, "--replay", replies, "--results", results, "--device", "cpu",
        "--attempts", 1, "--samples", 1, *doors.QUICK,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    back = tmp_path / "back"
    assert main(["export", str(results), "--kernelbench", str(back)]) == 0
    kernels = {path.name: path.read_text() for path in back.glob("*_kernel.py")}
    assert kernels == {path.name: path.read_text() for path in theirs.iterdir()}
    found = {
        number: entry["correctness"]
        for number, (entry,) in json.loads((back / "eval_results.json").read_text()).items()
    }
    assert found == {"1": True, "2": False, "3": False}
