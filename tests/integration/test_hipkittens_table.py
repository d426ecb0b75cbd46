"""scripts/hipkittens_table.py as its user starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.compilers import hip_or_skip
from support.kittens import kittens_or_skip

from hkbench.toolchain.hipkittens import WITH_CARD

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "hipkittens_table.py"
PLACE = "before\n<!-- scripts/hipkittens_table.py -->\nold\n<!-- end of the table -->\nafter\n"


def started(*options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *options]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, timeout=400, check=False)


def test_a_folder_that_is_no_checkout_is_named() -> None:
    done = started(HIPKITTENS_CDNA3_ROOT=str(ROOT))
    assert done.returncode == 2
    assert f"HIPKITTENS_CDNA3_ROOT={ROOT}: it has no include/kittens.cuh" in done.stderr


def stand_ins(folder: Path) -> dict[str, str]:
    """A tree for each dialect of which nothing is compiled."""
    master = "".join(f"#ifdef {dialect.macro}\n#endif\n" for dialect in WITH_CARD)
    for dialect in WITH_CARD:
        (folder / "include" / dialect).mkdir(parents=True)
    (folder / "include" / "kittens.cuh").write_text(master)
    return {f"HIPKITTENS_{dialect.upper()}_ROOT": str(folder) for dialect in WITH_CARD}


def test_a_file_without_a_place_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("text\n")
    done = started("--into", str(tmp_path / "page.md"), **stand_ins(tmp_path))
    assert done.returncode == 2
    assert "has no place for the table" in done.stderr
    assert (tmp_path / "page.md").read_text() == "text\n"


@pytest.mark.hipcc
@pytest.mark.slow
def test_rows_replace_what_stood_there(tmp_path: Path) -> None:
    hip_or_skip("no row of the table was made")
    for dialect in WITH_CARD:
        kittens_or_skip(dialect, "no row of the table was made")
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
