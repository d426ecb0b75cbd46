"""What fills the options that the command line leaves open."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from support import doors

from hkbench.cli.arguments import add_device, add_model
from hkbench.cli.batch_plan import add_strategy
from hkbench.cli.budgets import add_budgets
from hkbench.cli.configuration import configure
from hkbench.errors import ConfigurationError

FILE = """
model = "from-file"
base_url = "http://file/v1"
judge_model = "judge"
prices = "mine.toml"
samples = 5
attempts = 4
device = "cpu"
backend = "cpp"
"""
VARIABLES = ("LLM_MODEL", "LLM_GATEWAY_URL", "OPENAI_BASE_URL", "NUM_SAMPLES", "HKBENCH_PRICES")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def configured(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for add in (add_strategy, add_device, add_model, add_budgets):
        add(parser)
    options = parser.parse_args(arguments)
    configure(options)
    return options


def test_without_a_file_nothing_is_filled() -> None:
    options = configured()
    assert (options.model, options.base_url, options.samples, options.device) == (None, None, None, None)


def test_the_file_fills_what_is_open(tmp_path: Path) -> None:
    (tmp_path / "hkbench.toml").write_text(FILE)
    options = configured()
    assert (options.model, options.base_url, options.judge_model) == ("from-file", "http://file/v1", "judge")
    assert (options.samples, options.attempts, options.device, options.backend) == (5, 4, "cpu", "cpp")
    assert options.prices == Path("mine.toml")


def test_an_option_goes_before_the_environment_and_that_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hkbench.toml").write_text(FILE)
    monkeypatch.setenv("LLM_MODEL", "from-environment")
    monkeypatch.setenv("LLM_GATEWAY_URL", "http://environment/v1")
    monkeypatch.setenv("NUM_SAMPLES", "7")
    monkeypatch.setenv("HKBENCH_PRICES", "others.toml")
    options = configured()
    assert (options.model, options.base_url) == ("from-environment", "http://environment/v1")
    assert (options.samples, options.prices) == (None, None)  # their readers look at the environment
    options = configured("--model", "option", "--base-url", "http://option/v1", "--samples", "1", "--device", "auto")
    assert (options.model, options.base_url, options.samples) == ("option", "http://option/v1", 1)
    assert options.device == "auto"


def test_what_an_option_settles_otherwise_is_not_taken_from_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hkbench.toml").write_text(FILE)
    monkeypatch.setenv("LLM_MODEL", "from-environment")
    options = configured("--replay", "replies", "--rounds", "3")
    assert (options.model, options.base_url, options.samples, options.attempts) == (None, None, None, None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model = ", "not TOML"),
        ('modle = "x"', "modle is unknown; it may have model"),
        ('api_key = "x"', "in the environment only"),
        ("samples = 0", "samples: .*greater than or equal to 1"),
        ('backend = "metal"', "backend"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "hkbench.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=said):
        configured()


@pytest.mark.parametrize(
    ("environment", "names"),
    [
        ({}, ("LLM_GATEWAY_KEY", "LLM_MODEL", "LLM_GATEWAY_URL")),
        ({"LLM_GATEWAY_KEY": "one"}, ("LLM_MODEL", "LLM_GATEWAY_URL")),
        ({"LLM_GATEWAY_KEY": "one", "LLM_MODEL": "m"}, ("LLM_GATEWAY_URL",)),
        ({"OPENAI_API_KEY": "one"}, ("LLM_MODEL",)),
    ],
)
def test_one_line_says_all_that_is_to_be_set(
    tmp_path: Path, environment: dict[str, str], names: tuple[str, ...]
) -> None:
    done = doors.run("run_batch", 1, 40, "--results", tmp_path / "run", cwd=tmp_path, env=environment)
    assert done.returncode == 64
    assert done.stderr.count("\n") == 1
    told = [name for name in ("LLM_GATEWAY_KEY or", "LLM_MODEL", "LLM_GATEWAY_URL") if name in done.stderr]
    assert [name.removesuffix(" or") for name in told] == list(names)
    assert not (tmp_path / "run").exists()
