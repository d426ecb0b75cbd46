"""scripts/compare_strategies.py: how calls become attempts, and where the replies of a strategy lie; nothing is run."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest import mock

import pytest

from hkbench.llm.replies import replies_in_folder
from hkbench.problems import load_problem
from hkbench.strategies import STRATEGIES
from scripts.compare_strategies import folders, parse, shapes, write_made

ROOT = Path(__file__).resolve().parents[3]
PROBLEM = ROOT / "problems" / "level1" / "1_Scaled_residual_bf16.py"


@pytest.mark.parametrize("calls", [5, 6, 7, 12, 40])
def test_no_strategy_may_take_more_than_the_calls(calls: int) -> None:
    planned = shapes(list(STRATEGIES), calls, {}, {})
    assert [shape.strategy for shape in planned] == list(STRATEGIES)
    assert all(shape.max_calls <= calls for shape in planned)


def test_samples_and_attempts_of_a_strategy_are_those_that_it_is_given() -> None:
    planned = shapes(list(STRATEGIES), 6, {"judge": 3, "agents": 2}, {"reflect": 2, "graph": 2})
    assert [shape.described for shape in planned] == ["2x3", "1x3", "1x6", "2+4", "1x2"]
    assert planned[0].words[2:6] == ["--samples", "2", "--attempts", "3"]


def test_of_a_folder_with_a_file_of_each_strategy_that_file(tmp_path: Path) -> None:
    (tmp_path / "judge.toml").touch()
    with mock.patch.object(
        sys, "argv", ["", "1", "1", "--calls", "5", "--results", "x", "--replay", str(tmp_path), "agents=elsewhere"]
    ):
        options = parse()
    found = folders(options, options.planned, [])
    assert found == dict.fromkeys(STRATEGIES, tmp_path) | {
        "judge": tmp_path / "judge.toml",
        "agents": Path("elsewhere"),
    }


def test_replies_for_which_a_strategy_may_not_ask_are_not_lacking() -> None:
    planned = shapes(list(STRATEGIES), 6, {}, {})
    sure = {shape.strategy: len(shape.sure_keys("1_One")) for shape in planned}
    assert sure == {"reflect": 6, "judge": 3, "staged": 1, "graph": 3, "agents": 1}


def test_no_two_made_candidates_are_alike(tmp_path: Path) -> None:
    planned = shapes(["reflect", "graph"], 12, {}, {"reflect": 4})
    write_made(tmp_path, planned, [load_problem(PROBLEM)])
    texts = [path.read_text() for path in replies_in_folder(tmp_path).values()]
    assert len(texts) == len(set(texts)) >= 12
