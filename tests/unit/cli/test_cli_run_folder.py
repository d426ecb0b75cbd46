"""The run folder's name."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hkbench.cli.run_folder import place_of
from hkbench.errors import InputMissing, UsageError

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def options(results: str | None, model: str | None = "lab/kernel-7 (new)") -> argparse.Namespace:
    return argparse.Namespace(results=results and Path(results), model=model, strategy="judge")


def test_each_start_has_a_folder_of_its_own() -> None:
    place = place_of(options(None), NOW)
    assert place.folder == Path("results/20260304-050607_lab-kernel-7-new")
    assert place.is_new and place.root == Path("results")


def test_a_plain_name_stays() -> None:
    place = place_of(options("results/a"), NOW)
    assert (place.folder, place.is_new, place.root) == (Path("results/a"), False, Path("results"))
    assert place_of(options("elsewhere/a"), NOW).root is None


def test_time_model_and_strategy_have_places() -> None:
    place = place_of(options("runs/{time}_{model}_{strategy}"), NOW)
    assert place.folder == Path("runs/20260304-050607_lab-kernel-7-new_judge")
    assert place.root == Path("runs")
    assert place_of(options("{model}", None), NOW).folder == Path("replay")


@pytest.mark.parametrize("pattern", ["runs/{date}", "runs/{}", "runs/{time", "runs/{time.nothing}"])
def test_other_names_are_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match=r"use \{time\}, \{model\}, \{strategy\}"):
        place_of(options(pattern), NOW)


def test_two_starts_in_one_second_have_two_folders(tmp_path: Path) -> None:
    place = place_of(options(str(tmp_path / "{time}")), NOW)
    assert [place.make().name for _ in range(2)] == ["20260304-050607", "20260304-050607_2"]


def test_a_folder_that_cannot_be_made_is_66(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputMissing, match="name another folder with --results"):
        place_of(options(str(tmp_path / "file" / "{time}")), NOW).make()
