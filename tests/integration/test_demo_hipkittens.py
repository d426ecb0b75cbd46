"""HipKittens replies of examples/replies, as `make demo` replays some: refused with their lines, mended, reported."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from support import doors
from support.compilers import hip_or_skip
from support.kittens import kittens_or_skip

from hkbench.records import FailureKind, Status
from hkbench.store.layout import RunPaths
from hkbench.store.reader import read_run
from hkbench.toolchain.hipkittens import VARIABLES, Dialect

pytestmark = [pytest.mark.hipcc, pytest.mark.slow]
PAGE = doors.ROOT / "examples" / "replies" / "README.md"
LIMIT = 900.0  #: seconds: the first emulated device of a machine is compiled
_ROW = re.compile(r"\| `(?P<problem>\w+)` \| (?P<attempt>\d) \| `(?P<made>\w+)` \|")
PROBLEMS = ("1_Scaled_residual_bf16", "4_RMSNorm_fp32")


def labelled(file: str) -> dict[tuple[str, int], str]:
    """What README.md says of the replies in a file, by problem and attempt."""
    section = PAGE.read_text().partition(f"## `{file}`")[2].partition("\n## ")[0]
    return {(row["problem"], int(row["attempt"])): row["made"] for row in _ROW.finditer(section)}


def test_a_missing_barrier_and_a_missing_bound_are_reported_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hip_or_skip("no HipKittens batch was replayed")
    root = kittens_or_skip(Dialect.CDNA3, "no HipKittens batch was replayed")
    for variable in VARIABLES:
        monkeypatch.setenv(variable, str(root))
    results = tmp_path / "results"
    words = ("--backend", "hipkittens", "--device", "emulated:gfx942", "--results", results)
    replies = ("--replay", doors.ROOT / "examples" / "replies" / "hipkittens.toml")
    chosen = ("1", "40", "--match", f"^({'|'.join(PROBLEMS)})$")
    command = [*doors.command("run_batch", *chosen, *words, *replies)]
    done = subprocess.run(command, cwd=doors.ROOT, check=False, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout + done.stderr
    wanted = {call: made for call, made in labelled("hipkittens.toml").items() if call[0] in PROBLEMS}
    samples = [sample for problem in read_run(RunPaths(results)).problems for sample in problem.samples]
    came = {(one.key.problem, one.key.attempt): one.failure.kind if one.failure else one.status for one in samples}
    assert came == wanted and len(wanted) == 4
    assert {FailureKind.RACE, FailureKind.OUT_OF_BOUNDS, Status.EMULATED} == set(came.values())
    for sample in samples:
        assert sample.speedup is None
        if sample.failure is not None:
            (line,) = re.findall(r"^\w+: (hip_source:\d+) ", sample.failure.message)
            prompt = results / sample.key.problem / f"prompt_{sample.key.attempt + 1}.txt"
            assert f"{line}: " in prompt.read_text(), "the line is shown"
    assert doors.call("generate_report", results).returncode == 0
    report = json.loads((results / "detailed_report.json").read_text())
    assert report["complete"] is True
    assert {problem["language"] for problem in report["problems"]} == {"hipkittens"}
    page = (results / "report.html").read_text()
    assert all(problem in page for problem in PROBLEMS)
