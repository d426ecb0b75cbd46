"""The strategy of a run in run.json, and that of runs which recorded its options beside its name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.run_folder import run_config

from hkbench.records import RunConfig
from hkbench.strategies import STRATEGIES, find_strategy


def older(**fields: object) -> RunConfig:
    """Read settings as an older run recorded them."""
    found = json.loads(run_config().model_dump_json())
    del found["strategy"]
    return RunConfig.model_validate_json(json.dumps(found | fields))


@pytest.mark.parametrize(
    ("fields", "name", "options"),
    [
        ({}, "reflect", {"exhaust": False}),
        ({"strategy": "reflect", "exhaust": True, "from_best": False}, "reflect", {"exhaust": True}),
        ({"strategy": "judge", "exhaust": False, "from_best": True}, "judge", {"start": "best"}),
        ({"strategy": "judge", "exhaust": False, "from_best": False}, "judge", {"start": "last"}),
        ({"strategy": "staged", "exhaust": False, "from_best": False}, "staged", {}),
    ],
)
def test_an_older_run_has_the_strategy_that_a_run_with_its_options_has(
    fields: dict[str, object], name: str, options: dict[str, Any]
) -> None:
    config = older(**fields)
    strategy = find_strategy(name)
    told = strategy.Options(samples=config.samples, attempts=config.attempts, **options)
    assert config.strategy == strategy.record(told)
    assert strategy.recorded(config) == told


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_settings_come_back_as_they_were_written(name: str) -> None:
    config = run_config(strategy=name)
    assert RunConfig.model_validate_json(config.model_dump_json()) == config
    assert config.settings()["strategy"] == name
