"""The run folder's name."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hkbench.cli.batch_plan import run_folder
from hkbench.errors import UsageError

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def options(results: str, model: str | None = "lab/kernel-7 (new)") -> argparse.Namespace:
    return argparse.Namespace(results=Path(results), model=model, strategy="judge")


def test_a_plain_name_stays() -> None:
    assert run_folder(options("results/a"), NOW) == Path("results/a")


def test_time_model_and_strategy_have_places() -> None:
    found = run_folder(options("runs/{time}_{model}_{strategy}"), NOW)
    assert found == Path("runs/20260304-050607_lab-kernel-7-new_judge")
    assert run_folder(options("{model}", None), NOW) == Path("replay")


@pytest.mark.parametrize("pattern", ["runs/{date}", "runs/{}", "runs/{time", "runs/{time.nothing}"])
def test_other_names_are_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match=r"use \{time\}, \{model\}, \{strategy\}"):
        run_folder(options(pattern), NOW)
