"""One candidate in three forms."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.forms import Form, in_form

CANDIDATES = sorted((Path(__file__).resolve().parents[3] / "benchmarks/candidates/kernelbench_level1").glob("*.py"))

SOURCE = """
from builder import load_inline

extension = load_inline(name="a")

class ModelNew:
    def forward(self, x):
        return extension(x)
"""


def run(form: Form) -> list[str]:
    """Return what happens, in order."""
    seen: list[str] = []

    def load_inline(name: str) -> object:
        seen.append(f"build {name}")
        return lambda x: seen.append(f"call {x}")

    namespace: dict[str, object] = {"load_inline": load_inline, "__name__": "candidate"}
    exec(compile(in_form(SOURCE.replace("from builder import load_inline", ""), form), "code.py", "exec"), namespace)
    seen.append("loaded")
    model = namespace["ModelNew"]()  # type: ignore[operator]
    seen.append("made")
    model.forward(1)
    model.forward(2)
    return seen


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (Form.MODULE, ["build a", "loaded", "made", "call 1", "call 2"]),
        (Form.INIT, ["loaded", "build a", "made", "call 1", "call 2"]),
        (Form.FORWARD, ["loaded", "made", "build a", "call 1", "call 2"]),
    ],
)
def test_where_it_builds(form: Form, expected: list[str]) -> None:
    assert run(form) == expected


@pytest.mark.parametrize("path", CANDIDATES, ids=lambda path: path.stem)
def test_all_candidates_have_three_forms(path: Path) -> None:
    module, *late = (in_form(path.read_text(), form) for form in Form)
    assert module == path.read_text()
    for source in late:
        top = [node for node in ast.parse(source).body if isinstance(node, ast.Assign)]
        assert not any(isinstance(node.value, ast.Call) for node in top)
        assert source.count("load_inline(") == 1


def test_what_builds_nothing_has_no_other_form() -> None:
    with pytest.raises(ValueError, match="builds nothing"):
        in_form("class ModelNew:\n    pass\n", Form.INIT)
