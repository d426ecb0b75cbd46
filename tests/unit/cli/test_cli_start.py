"""What a command imports before it works: the commands that people call often start without what they never use."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hkbench.cli.main import COMMANDS

#: What no overview of the commands needs.
HEAVY = {
    "asyncio", "hkbench.records", "hkbench.engine", "hkbench.report", "jinja2", "json_repair", "markdown_it",
    "matplotlib", "numpy", "openai", "pandas", "pydantic", "pygments", "rich", "textual", "torch",
}  # fmt: skip


def imported(arguments: list[str], entry: str = "main") -> set[str]:
    """The modules in the interpreter when `hkbench ARGUMENTS` (or `door`, a script) has ended."""
    code = (
        "import sys, contextlib, io\n"
        f"from hkbench.cli.main import {entry}\n"
        "try:\n"
        "    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):\n"
        f"        {entry}({'*' if entry == 'door' else ''}{arguments!r})\n"
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
