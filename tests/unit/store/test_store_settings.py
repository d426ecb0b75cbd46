"""What differs between the settings of two runs, and what a run may be given more of."""

from __future__ import annotations

import pytest
from support.run_folder import run_config

from hkbench.records import EvaluationSettings, RunConfig
from hkbench.store.settings import differences, names_text
from hkbench.strategies import Reflect


def with_problems(*names: str, sha256: str = "0" * 64) -> RunConfig:
    digests = tuple(sha256 for _ in names)
    return run_config().model_copy(update={"problems": names, "problem_hashes": digests})


def changed(**changes: object) -> RunConfig:
    return run_config().model_copy(update=changes)


def test_the_same_settings() -> None:
    assert differences(run_config(), run_config()).none
    assert differences(run_config(), changed(base_url="http://other/v1")).none
    assert differences(run_config(), changed(backend="hip"), {"backend"}).none


@pytest.mark.parametrize(
    ("now", "line"),
    [
        (changed(evaluation=EvaluationSettings(trials=2)), "judge.trials 5 -> 2"),
        (changed(evaluation=EvaluationSettings(rtol={"float32": 1e-5})), "judge.rtol.float32 not set -> 1e-05"),
        (changed(temperature=0.5), "temperature not set -> 0.5"),
        (changed(strategy=Reflect().record(Reflect.Options(exhaust=True))), "exhaust false -> true"),
        (changed(samples=1), "samples 2 -> 1: a run can be given more, not fewer"),
        (changed(attempts=1), "attempts 2 -> 1: a run can be given more, not fewer"),
        (changed(prompts_sha256="1" * 64), "the prompt files differ from those of the run"),
        (with_problems("1_ReLU", sha256="1" * 64), "problems: the files of 1 have changed"),
    ],
)
def test_each_setting_has_a_line_of_its_own(now: RunConfig, line: str) -> None:
    found = differences(run_config(), now)
    assert found.refused == (line,)
    assert found.added == ()


def test_more_may_be_added() -> None:
    found = differences(with_problems("1_A", "2_B"), with_problems("1_A", "2_B", "3_C", "5_E", "6_F", "7_G"))
    assert (found.refused, found.added) == ((), ("problems: adds 3, 5 to 7",))
    found = differences(run_config(), changed(samples=3, attempts=4))
    assert (found.refused, found.added) == ((), ("samples 2 -> 3", "attempts 2 -> 4"))


def test_fewer_problems_or_others_are_refused() -> None:
    found = differences(with_problems("1_A", "2_B", "3_C"), with_problems("2_B"))
    assert found.refused == ("problems: leaves out 1, 3",)
    found = differences(with_problems("1_A"), with_problems("2_B"))
    assert found.refused == ("problems: leaves out 1", "problems: adds 2")


def test_names_without_numbers_are_named() -> None:
    assert names_text(["1_A", "Mine"]) == "1_A, Mine"
    assert names_text([f"P{i}" for i in range(20)]).endswith("and 8 more")
