"""What is kept of a profiler's run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hkbench.errors import UsageError
from hkbench.profile import Choice, Plan, Profiler, plan
from hkbench.profile.keep import Kept


@pytest.fixture
def planned(tmp_path: Path) -> Plan:
    folder = tmp_path / "run"
    folder.mkdir()
    return plan(Choice(Profiler.NCU, "ncu"), "sm_90", folder, ("python", "one.py"), forwards=2)


def test_nothing_is_kept_unless_asked_for() -> None:
    assert Kept.of(None, "1_Relu", b"code") is None


def test_files_and_what_was_printed(tmp_path: Path, planned: Plan) -> None:
    kept = Kept.of(str(tmp_path / "kept"), "1_Relu", b"code")
    assert kept is not None
    (planned.folder / "ncu.csv").write_text("results\n")
    kept.step(planned.steps[0], None, 1.23456, "said")
    kept.files(planned)
    assert (kept.folder / "ncu.csv").read_text() == "results\n"
    said = json.loads((kept.folder / "metrics.json").read_text())
    assert said["command"] == list(planned.steps[0].command)
    assert (said["returncode"], said["seconds"], said["output"]) == (None, 1.235, "said")


def test_candidates_of_one_problem_have_folders_of_their_own(tmp_path: Path) -> None:
    one, other = (Kept.of(str(tmp_path), "1_Relu", code) for code in (b"one", b"other"))
    assert one is not None and other is not None
    assert one.folder != other.folder


def test_a_link_in_place_of_a_result_is_not_followed(tmp_path: Path, planned: Plan) -> None:
    (tmp_path / "secret").write_text("of the user")
    (planned.folder / "ncu.csv").symlink_to(tmp_path / "secret")
    kept = Kept.of(str(tmp_path / "kept"), "1_Relu", b"code")
    assert kept is not None
    kept.files(planned)
    assert list(kept.folder.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="--keep-profile"):
        Kept.of(str(tmp_path / "file"), "1_Relu", b"code")
