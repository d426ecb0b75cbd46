#!/usr/bin/env python3
"""Write what the pages of docs take from the source.

    .venv/bin/python scripts/docs.py

docs/architecture.md: the picture of the rooms, from the layers that import-linter holds the code to (pyproject.toml),
and what each room does, by the first line of its docstring. docs/commands.md: the list of the commands.
docs/agents.md: the flow of strategy agents, from its table of branches.
docs/options.md: the options of each command, from its parser. docs/rules.md: the rules of static reading.
tests/unit/test_docs.py fails where a page is not what this writes.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hkbench.agents import flow  # noqa: E402
from hkbench.cli.main import COMMANDS  # noqa: E402
from hkbench.cli.parser import Parser  # noqa: E402
from hkbench.reading.__main__ import page as rules  # noqa: E402

DOCS = ROOT / "docs"
DIAGRAM = DOCS / "arch-main-runner" / "package.mmd"  #: the picture of the rooms as a file of its own
MAX_ROOMS_IN_A_LINE = 5
GENERATED = re.compile(r"(<!-- begin (\w+): [^\n]* -->\n).*?(<!-- end \2 -->)", re.DOTALL)


def layers() -> list[list[str]]:
    """Return the rooms of each layer, the uppermost layer first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rooms = next(contract for contract in contracts if contract["name"] == "rooms")
    return [[room.strip() for room in layer.split("|")] for layer in rooms["layers"]]


def diagram() -> str:
    """Draw a box for each layer, as a mermaid flowchart: a room imports only from the boxes below its own."""
    found = layers()
    lines = ["%% Written by scripts/docs.py from the layers in pyproject.toml.", "flowchart TB"]
    for number, rooms in enumerate(found):
        starts = range(0, len(rooms), MAX_ROOMS_IN_A_LINE)
        parts = [" · ".join(rooms[start : start + MAX_ROOMS_IN_A_LINE]) for start in starts]
        lines.append(f'    layer{number}["{"<br/>".join(parts)}"]')
    lines += [f"    layer{number} --> layer{number + 1}" for number in range(len(found) - 1)]
    return "\n".join(lines) + "\n"


def picture() -> str:
    """Return the diagram as a block of Markdown."""
    return f"```mermaid\n{diagram()}```\n"


def purpose(room: str) -> str:
    """Return the first line of the docstring of a room, a package or a module of hkbench."""
    package = ROOT / "hkbench" / room / "__init__.py"
    source = package if package.exists() else ROOT / "hkbench" / f"{room}.py"
    text = ast.get_docstring(ast.parse(source.read_text()))
    if not text:
        raise SystemExit(f"{source.relative_to(ROOT)} has no docstring: write one line that says what the room does")
    return text.split("\n\n")[0].replace("\n", " ")


def table() -> str:
    """List the rooms from the uppermost layer down, each with its purpose."""
    rows = [f"| `{room}` | {purpose(room)} |" for layer in layers() for room in layer]
    return "\n".join(["| room | what it does |", "| --- | --- |", *rows]) + "\n"


def commands() -> str:
    """List the commands, each with what it does."""
    rows = [f"| `hkbench {name}` | {command.help} |" for name, command in COMMANDS.items()]
    return "\n".join(["| command | does |", "| --- | --- |", *rows]) + "\n"


def options() -> str:
    """List the options and arguments of every command, in a table each."""
    parts = []
    for name, command in COMMANDS.items():
        parser = Parser(prog=f"hkbench {name}")
        command.load().add_arguments(parser)
        rows = [f"| {_call(action)} | {_meaning(action)} |" for action in _actions(parser)]
        parts.append("\n".join([f"## hkbench {name}", "", "| option | meaning |", "| --- | --- |", *rows]) + "\n")
    return "\n".join(["", *parts, ""])


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    shown = (action for action in parser._actions if action.help != argparse.SUPPRESS)
    return (action for action in shown if action.dest != "help")


def _call(action: argparse.Action) -> str:
    """Return how an option or argument is written, as Markdown."""
    value = action.metavar or ("" if action.choices is None else "\\|".join(map(str, action.choices)))
    if not action.option_strings:
        return f"`{value or action.dest}`"
    value = "" if action.nargs == 0 else value or action.dest.upper()
    return ", ".join(f"`{' '.join([option, str(value)]).strip()}`" for option in action.option_strings)


def _meaning(action: argparse.Action) -> str:
    text = " ".join((action.help or "").replace("%%", "%").split())
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def agents() -> str:
    """Return the flow of strategy agents as a block of Markdown, from its table of branches."""
    return f"```mermaid\n{flow.diagram()}```\n"


def lines() -> str:
    """Return how many lines each file of strategy agents has."""
    files = sorted((ROOT / "hkbench" / "agents").glob("[a-z]*.py"))
    found = ", ".join(f"`{file.name}` {len(file.read_text('utf-8').splitlines())}" for file in files)
    return f"{textwrap.fill(f'Lines of the files: {found}.', 100, break_on_hyphens=False)}\n"


PARTS: dict[str, dict[str, Callable[[], str]]] = {
    "agents.md": {"flow": agents, "lines": lines},
    "architecture.md": {"picture": picture, "rooms": table},
    "commands.md": {"commands": commands},
    "options.md": {"options": options},
}


def page(name: str) -> str:
    """Return the text of a page of docs, with its generated parts as the source has them."""
    parts, text = PARTS[name], (DOCS / name).read_text("utf-8")
    found = [match[2] for match in GENERATED.finditer(text)]
    if sorted(found) != sorted(parts):
        raise SystemExit(f"docs/{name} must have one part each for {', '.join(parts)}, and has {found}")
    return GENERATED.sub(lambda match: f"{match[1]}{parts[match[2]]()}{match[3]}", text)


def pages() -> dict[Path, str]:
    """Return the text of every file that this script writes."""
    return {DOCS / name: page(name) for name in PARTS} | {DIAGRAM: diagram(), DOCS / "rules.md": rules()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
