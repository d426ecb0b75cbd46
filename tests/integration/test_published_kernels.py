"""scripts/published_kernels.py as a user runs it: prepare, judge on the CPU, and the table."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import doors

pytestmark = pytest.mark.slow
SCRIPT = doors.ROOT / "scripts" / "published_kernels.py"


def script(*words: object) -> str:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, words)],
        env=doors.environment(), capture_output=True, text=True, timeout=doors.LIMIT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def cell(table: str, row: str) -> str:
    (line,) = (line for line in table.splitlines() if line.strip("|* ").startswith(row))
    return line.split("|")[2].strip("* ")


def test_prepare_judge_table(tmp_path: Path) -> None:
    entries = []
    for number, code in enumerate((doors.fast(1), doors.wrong(2), doors.raising("no"), "None"), start=1):
        path = doors.problem(tmp_path / "KernelBench", f"{number}_P", number)
        scores = {"score_default": 10.0 * number, "score_torch_compile_default": 2.0}
        entries.append({
            "level_id": 1, "task_id": number, "ref_code": path.read_text(), "custom_code": code, **scores,
        })  # fmt: skip
    published = tmp_path / "h100.json"
    published.write_text("\n".join(map(json.dumps, entries)))
    out, run, page = tmp_path / "out", tmp_path / "run", tmp_path / "page.md"
    said = script("prepare", "cuda-l1", published, "--kernelbench", tmp_path, "--out", out)
    assert "1/4" in said
    text = (out / "replies.toml").read_text()
    (out / "replies.toml").write_text(text.replace("[cuda.", "[cpp."))  # what a CPU judges
    done = doors.call(
        "run_batch", "--problems", out / "KernelBench", "--replay", out / "replies.toml", "--device", "cpu",
        "--attempts", 1, "--samples", 1, "--results", run, *doors.QUICK,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    page.write_text("before\n<!-- scripts/published_kernels.py -->\nold\n<!-- end of the table -->\nafter\n")
    compiled = shutil.copytree(run, tmp_path / "compiled")
    [first] = compiled.glob("*1_P/attempt_1/sample_1/result.json")
    result = json.loads(first.read_text())
    result["baselines"] = [{"name": "compile", "speedup": {"value": 1.5, "low": 1.4, "high": 1.6}}]
    first.write_text(json.dumps(result))
    script("table", f"{out}={run},{compiled}", "--into", page)
    table = page.read_text()
    assert table.startswith("before\n") and table.endswith("after\n") and "\nold\n" not in table
    assert cell(table, "published entries") == "4"
    assert cell(table, "without code") == "1"
    assert cell(table, "judged |") == "3"
    assert cell(table, "right by its own test") == "1, 2, 0"
    assert cell(table, "correct by our rules") == "1"
    assert cell(table, "claimed, of the correct") == "10.00x, 10.00x"
    assert cell(table, "over `torch.compile`") == "1.50x, 1.50x"
    assert cell(table, "of these, faster than `torch.compile`") == "1 of 1"
    assert cell(table, "`wrong_values`") == "1"
    named = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| 1/")]
    assert named[:2] == ["1/3 P", "1/2 P"]
