"""scripts/run_tests.sh: which failures count."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import doors

pytestmark = pytest.mark.slow

PASSES = "def test_it(): pass\n"
FAILS = "def test_it(): assert 0\n"
FAILS_ONCE = """from pathlib import Path

def test_it():
    ran = Path(__file__).with_suffix(".ran")
    assert ran.exists() or ran.touch()
"""
ALONE = "import pytest\n\n@pytest.mark.alone\ndef test_it(): pass\n"


@pytest.mark.parametrize(
    ("integration", "unit", "code"),
    [(PASSES, PASSES, 0), (FAILS_ONCE, PASSES, 0), (FAILS, PASSES, 1), (FAILS_ONCE, FAILS_ONCE, 1)],
    ids=["all pass", "an integration test failed beside others", "it fails alone too", "a unit test failed once"],
)
def test_which_failures_count(integration: str, unit: str, code: int, tmp_path: Path) -> None:
    tree = {
        "tests/integration/test_judged.py": integration,
        "tests/integration/test_alone.py": ALONE,
        "tests/unit/test_one.py": unit,
        "tests/unit/sandbox/test_sandbox.py": PASSES,
        "tests/gpu/test_gpu.py": PASSES,
        "pytest.ini": "[pytest]\nmarkers = alone: x\naddopts = --import-mode=importlib\n",
        ".venv/bin/python": f'#!/bin/sh\nexec {sys.executable} "$@"\n',
    }
    for name, text in tree.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / ".venv/bin/python").chmod(0o755)
    (tmp_path / "scripts").mkdir()
    script = shutil.copy(doors.ROOT / "scripts" / "run_tests.sh", tmp_path / "scripts")
    ran = subprocess.run([script, "not slow", "-q"], capture_output=True, text=True, timeout=doors.LIMIT, check=False)
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert ("tests/integration/test_judged.py::test_it" in ran.stdout.partition("run once more alone:")[2]) == (
        integration != PASSES and unit == PASSES
    )
