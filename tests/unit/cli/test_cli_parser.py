"""Wrong arguments: one line, exit code 64, and what was meant."""

from __future__ import annotations

import argparse

import pytest

from hkbench.cli.arguments import add_device, add_model, add_numbers
from hkbench.cli.budgets import add_budgets
from hkbench.cli.main import door, main
from hkbench.cli.parser import Parser
from hkbench.cli.settings import add_evaluation


def parser() -> Parser:
    made = Parser(prog="run_batch.py")
    add_numbers(made, "all")
    made.add_argument("--samples", type=int)
    for add in (add_device, add_evaluation, add_model, add_budgets):
        add(made)
    return made


def said_of(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which the parser ends."""
    with pytest.raises(SystemExit) as left:
        parser().parse_args(words)
    assert left.value.code == 64
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("run_batch.py: ") and line.endswith("; see run_batch.py --help")
    return line


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("--num-samples", "--samples"),
        ("--sample", "--samples"),
        ("--samples_=3", "--samples"),
        ("--temp", "--temperature"),
        ("--url", "--base-url"),
        ("--timeing-runs=3", "--timing-runs"),
        ("--max-tokenz", "--max-tokens"),
    ],
)
def test_a_misspelt_option(wrong: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"did you mean {meant}?" in said_of(["1", "2", wrong, "3"], capsys)


def test_an_option_that_nothing_is_like(capsys: pytest.CaptureFixture[str]) -> None:
    line = said_of(["--xyzzy"], capsys)
    assert "there is no option --xyzzy" in line and "did you mean" not in line


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--trials", "many"], "argument --trials: must be a whole number of at least 1, not 'many'"),
        (["--trials", "0"], "must be a whole number of at least 1, not '0'"),
        (["--trials", "-1"], "must be a whole number of at least 1, not '-1'"),
        (["--trials", "1.5"], "must be a whole number of at least 1, not '1.5'"),
        (["--run-timeout", "soon"], "must be a positive number of seconds, not 'soon'"),
        (["--run-timeout", "nan"], "must be a positive number of seconds, not 'nan'"),
        (["--memory-gib", "0"], "must be a positive number of GiB, not '0'"),
        (["--temperature", "hot"], "must be a number, not 'hot'"),
        (["--max-cost", "much"], "must be a positive amount of money, not 'much'"),
        (["--fail-on-error", "half"], "must be a share of at least 0 and less than 1, not 'half'"),
        (["--max-time", "8hours"], "is not a duration: write 90m"),
        (["--track", "both"], "own"),
        (["--backend", "opencl"], "hipkittens"),
        (["--trials"], "expected one argument"),
        (["1", "--trials", "3", "40"], "40: not expected here"),
    ],
)
def test_a_wrong_value_is_one_line(words: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert expected in said_of(words, capsys)


def test_the_option_is_looked_at_before_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["eval", "--kode", "x"])
    assert "did you mean --code?" in capsys.readouterr().err


def test_what_follows_two_dashes_is_no_option() -> None:
    assert parser().parse_args(["--", "3"]).numbers == ["3"]


def test_given_is_what_the_command_line_has() -> None:
    options = parser().parse_args(["1", "3", "--trials", "5", "--rtol", "float32=1e-5", "--host-copies"])
    assert options.given == {"numbers", "trials", "rtol", "host_copies"}
    assert options.rtol == ["float32=1e-5"] and options.timing_seconds == 30.0
    assert parser().parse_args([]).given == frozenset()


def test_given_through_a_command_too(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[argparse.Namespace] = []

    def note(options: argparse.Namespace) -> int:
        seen.append(options)
        return 0

    monkeypatch.setattr("hkbench.cli.batch.run", note)
    assert main(["run", "1", "--samples", "2"]) == door("run", ["1", "--samples", "2"]) == 0
    assert [options.given for options in seen] == [{"numbers", "samples"}] * 2
