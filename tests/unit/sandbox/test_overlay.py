"""A command that sees other files in the place of some."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.isolation import runner_layers

from hkbench.sandbox import overlay
from hkbench.sandbox.cage import NAMESPACES

pytestmark = pytest.mark.skipif(
    not any(layer.startswith(NAMESPACES) for layer in runner_layers()), reason="no mount namespaces here"
)


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """A file, and another one that is to be seen in its place."""
    (tmp_path / "seen").write_text("other words")
    (tmp_path / "here").write_text("words")
    places = tmp_path / "places.json"
    places.write_text(json.dumps({str(tmp_path / "here"): str(tmp_path / "seen")}))
    return places


def run(places: Path, program: str) -> str:
    command = [*overlay.words(places), sys.executable, "-c", program]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_only_the_command_sees_the_other_file(places: Path) -> None:
    here = places.with_name("here")
    assert run(places, f"print(open({str(here)!r}).read())") == "other words"
    assert here.read_text() == "words"


def test_nobody_writes_to_it(places: Path) -> None:
    here = places.with_name("here")
    program = f"try: open({str(here)!r}, 'w')\nexcept OSError as error: print(error.strerror)"
    assert run(places, program) == "Read-only file system"
    assert places.with_name("seen").read_text() == "other words"


def test_what_it_starts_sees_the_same(places: Path) -> None:
    program = f"import subprocess; subprocess.run(['cat', {str(places.with_name('here'))!r}])"
    assert run(places, program) == "other words"
