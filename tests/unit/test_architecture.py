"""docs/architecture.md and docs/arch-main-runner: the layers are those of the contracts, classes and methods exist."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

from scripts.docs import DIAGRAM, layers

FOLDER = DIAGRAM.parent
ROOT = FOLDER.parents[1]


def named(path: str) -> Any:
    """The class, function or module with this dotted name."""
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def has(cls: Any, member: str) -> bool:
    """Whether a class has a method, a property, a field, or an attribute that its constructor sets."""
    if hasattr(cls, member):
        return True
    fields = {name for base in cls.__mro__ for name in getattr(base, "__annotations__", {})}
    return member in fields or f"self.{member} " in inspect.getsource(cls)


def test_the_packages_are_the_layers_of_the_contract() -> None:
    rooms = {room for layer in layers() for room in layer}
    there = {
        path.stem for path in (ROOT / "hkbench").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert rooms == there - {"__init__"}


def test_the_classes_have_the_members_that_are_shown() -> None:
    text = (FOLDER / "class.mmd").read_text()
    found = re.findall(r"%% (hkbench[\w.]+)\n    class (\w+) \{\n(.*?)\n    \}", text, re.DOTALL)
    assert len(found) == len(re.findall(r"^    class ", text, re.MULTILINE)) > 15
    for path, name, body in found:
        cls = named(path)
        assert cls.__name__ == name
        for member in re.findall(r"^\s+\+(\w+)", body, re.MULTILINE):
            assert has(cls, member), f"{path} has no {member}"
    boxes = {name for _, name, _ in found}
    links = re.findall(r"^    (\w+) [*<|.o-]+[->|.*]* (\w+)", text, re.MULTILINE)
    assert len(links) > 15 and {end for link in links for end in link} <= boxes


def test_the_messages_are_methods_of_their_receivers() -> None:
    text = (FOLDER / "sequence.mmd").read_text()
    classes = {name: named(path) for name, path in re.findall(r"participant (\w+) as (hkbench[\w.]+)", text)}
    messages = re.findall(r"(\w+)->>(\w+): (\w+)\(", text)
    assert len(messages) == text.count("->>") - text.count("-->>") > 20
    for sender, receiver, method in messages:
        assert sender in classes and has(classes[receiver], method), f"{receiver} has no {method}"
