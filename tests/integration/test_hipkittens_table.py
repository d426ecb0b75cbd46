"""scripts/hipkittens_table.py as its user starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.compilers import hip_or_skip

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "hipkittens_table.py"
VARIABLES = ("HIPKITTENS_CDNA3_ROOT", "HIPKITTENS_CDNA4_ROOT")
PLACE = "before\n<!-- scripts/hipkittens_table.py -->\nold\n<!-- end of the table -->\nafter\n"


def started(*options: str, unset: tuple[str, ...] = (), **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in unset} | variables
    command = [sys.executable, str(SCRIPT), *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400, check=False)


def test_without_a_checkout_it_says_which_is_missing() -> None:
    done = started(unset=VARIABLES, HIPKITTENS_CDNA3_ROOT=str(ROOT))
    assert done.returncode == 2
    assert "HIPKITTENS_CDNA4_ROOT not set" in done.stderr
    assert "HIPKITTENS_CDNA3_ROOT and" not in done.stderr


def test_a_file_without_a_place_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("text\n")
    done = started("--into", str(tmp_path / "page.md"), unset=(), **dict.fromkeys(VARIABLES, str(ROOT)))
    assert done.returncode == 2
    assert "has no place for the table" in done.stderr
    assert (tmp_path / "page.md").read_text() == "text\n"


@pytest.mark.hipcc
@pytest.mark.slow
def test_rows_replace_what_stood_there(tmp_path: Path) -> None:
    if not all(os.environ.get(name) for name in VARIABLES):
        pytest.skip(f"{' AND '.join(VARIABLES)} ARE NOT SET, so no row of the table was made")
    hip_or_skip("no row of the table was made")
    page = tmp_path / "page.md"
    page.write_text(PLACE)
    done = started("--only", "example_attention", "--into", str(page))
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert text.startswith("before\n<!--")
    assert text.endswith("<!-- end of the table -->\nafter\n")
    assert "old" not in text
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| prompts: ")]
    assert [(row[2], row[3], row[7:9]) for row in rows] == [
        ("gfx942", "yes (kernel only)", ["0", "0"]),
        ("gfx950", "yes (kernel only)", ["0", "0"]),
    ]
