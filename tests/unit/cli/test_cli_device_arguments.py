"""--device-index and --warmup: what they take, and what they answer to anything else."""

from __future__ import annotations

import argparse

import pytest

from hkbench.cli.arguments import add_build_only, add_device, check_build_only
from hkbench.cli.parser import Parser
from hkbench.cli.settings import add_evaluation, evaluation_settings
from hkbench.errors import UsageError


def options(*words: str) -> argparse.Namespace:
    parser = Parser()
    add_build_only(parser, "")
    add_device(parser)
    add_evaluation(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(("text", "found"), [("0", (0,)), ("2,0", (2, 0)), ("1, 1,3", (1, 3))])
def test_devices_by_number(text: str, found: tuple[int, ...]) -> None:
    assert options("--device-index", text).device_index == found


def test_all_devices_unless_some_are_named() -> None:
    assert options().device_index is None


@pytest.mark.parametrize("text", ["", "one", "-1", "0,", "0;1", "1.5"])
def test_what_is_no_number_of_a_device_is_64(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        options(f"--device-index={text}")
    assert left.value.code == 64
    assert "--device-index" in capsys.readouterr().err


def test_a_build_alone_has_no_device() -> None:
    with pytest.raises(UsageError, match="--device-index"):
        check_build_only(options("--build-only", "--device-index", "0"))


def test_warm_up_calls_reach_the_evaluator() -> None:
    assert evaluation_settings(options("--warmup", "0")).warmups == 0
    assert evaluation_settings(options("--warmup", "25")).warmups == 25
    assert evaluation_settings(options()).warmups == 3


@pytest.mark.parametrize("text", ["-1", "some", "2.5", ""])
def test_a_wrong_number_of_warm_up_calls_is_64(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        options(f"--warmup={text}")
    assert left.value.code == 64
    assert "--warmup" in capsys.readouterr().err
