"""A kind of device that somebody else adds, by one file and one entry point: a run, from the prompt to the report."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import plugins
from support.small_problems import AFFINE, forward, problem_file

from hkbench.errors import UsageError
from hkbench.records import Verdict

ROOT = Path(__file__).parents[2]
LOADS_ITSELF = """
import sys
from hkbench.records import Verdict
verdict = Verdict.model_validate_json(open(sys.argv[1]).read())
print(verdict.conditions.device)
"""


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of an interpreter in which the plug-in is installed."""
    return plugins.installed(
        tmp_path / "packages", "host_again", "hkbench.device_kinds: host_again = host_again:HOST_AGAIN"
    )


def test_a_run_on_a_kind_of_device_that_was_added(tmp_path: Path, installed: dict[str, str]) -> None:
    problem = problem_file(tmp_path / "problems", AFFINE)
    reply = tmp_path / "replies" / problem.name / "attempt_1" / "sample_1" / "response.txt"
    reply.parent.mkdir(parents=True)
    reply.write_text(f"```python\nfrom torch import nn\n\n{forward('return 2.0 * x + 1.0')}\n```\n")
    results = tmp_path / "results"
    words = [str(problem.number), str(problem.number), "--problems", str(problem.path.parent), "--backend", "cpp"]
    words += ["--device", "host_again", "--samples", "1", "--attempts", "1", "--track", "any"]
    words += ["--busy-wait", "0", "--shapes", "0"]
    words += ["--replay", str(tmp_path / "replies"), "--results", str(results)]
    done = _python(installed, str(ROOT / "run_batch.py"), *words)
    assert done.returncode == 0, done.stdout + done.stderr

    (result,) = results.rglob("result_1.json")
    recorded = _python(installed, "-c", LOADS_ITSELF, str(result))
    assert recorded.stdout.strip() == "host_again", recorded.stderr
    plain = result.read_text().replace('"host_again"', '"cpu"')
    timing = Verdict.model_validate_json(plain).candidate
    assert timing is not None and timing.clock == "a clock of another kind"
    assert '"host_again"' in (results / "detailed_report.json").read_text()
    shown = _python(installed, "-m", "hkbench.cli.main", "show", str(results))
    assert shown.returncode == 0, shown.stderr


def test_a_kind_of_device_that_is_not_installed_is_not_known() -> None:
    done = _python(
        dict(os.environ), str(ROOT / "eval.py"), "--device", "host_again", "--problem", "1", "--code", "a.py"
    )
    assert done.returncode == UsageError.exit_code and "host_again" in done.stderr


def _python(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
