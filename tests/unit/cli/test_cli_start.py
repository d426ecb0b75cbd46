"""What a command imports before it works: the commands that people call often start without what they never use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.run_folder import RunFolder, correct

from hkbench.cli.main import COMMANDS

#: What no overview of the commands needs.
HEAVY = {
    "asyncio", "hkbench.records", "hkbench.engine", "hkbench.report", "jinja2", "json_repair", "markdown_it",
    "matplotlib", "numpy", "openai", "pandas", "pydantic", "pygments", "rich", "textual", "torch",
}  # fmt: skip


def imported(arguments: list[str]) -> set[str]:
    """The modules in the interpreter when `hkbench ARGUMENTS` has ended."""
    code = (
        "import sys, contextlib, io\n"
        "from hkbench.cli.main import main\n"
        "try:\n"
        "    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):\n"
        f"        main({arguments!r})\n"
        "except SystemExit:\n"
        "    pass\n"
        "print(*sys.modules)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120)
    return set(found.stdout.split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], [], ["fly"]])
def test_the_overview_imports_no_command(arguments: list[str]) -> None:
    found = imported(arguments)
    assert not found & HEAVY
    assert not found & {f"hkbench.cli.{command.module}" for command in COMMANDS.values()}


@pytest.mark.parametrize("command", ["show", "eval"])
def test_the_help_of_a_command_imports_that_command_only(command: str) -> None:
    found = imported([command, "--help"])
    assert {name for name, one in COMMANDS.items() if f"hkbench.cli.{one.module}" in found} == {command}


def test_every_command_is_there() -> None:
    for command in COMMANDS.values():
        module = command.load()
        assert module.DESCRIPTION and callable(module.add_arguments) and callable(module.run)


@pytest.mark.parametrize("address", [[], ["1"], ["1/1/1"]])
def test_looking_into_a_run_imports_what_it_shows(address: list[str], tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.sample("1_ReLU", 1, 1, correct("1_ReLU", 1.5))
    found = imported(["show", str(tmp_path), *address])
    assert "hkbench.store.reader" in found
    assert not found & (HEAVY - {"hkbench.records", "hkbench.report", "numpy", "pydantic", "rich"})


def test_watching_a_run_needs_no_report(tmp_path: Path) -> None:
    RunFolder(tmp_path)
    found = imported(["monitor", "--once", str(tmp_path)])
    assert "hkbench.monitor.live" in found
    assert not found & (HEAVY - {"hkbench.records", "pydantic", "rich"})
