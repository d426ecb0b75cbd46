"""Problems in JSON: the files that they become, and what is said of wrong ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from support.doors import ROOT

from hkbench.cli.problem_file import problem_file
from hkbench.errors import ConfigurationError, InputMissing
from hkbench.problems import apply_sizes, load_problem
from hkbench.specs.described import described_problem

WHOLE = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x + 1


def get_inputs():
    return [torch.rand(3)]


def get_init_inputs():
    return []
"""


def told(**changes: Any) -> dict[str, Any]:
    tensor = {"name": "x", "dtype": "float32", "shape": ["n"]}
    return {
        "name": "Twice",
        "shapes": {"n": 64},
        "inputs": [tensor],
        "reference": "def reference(x):\n    return 2 * x",
    } | changes


def written(folder: Path, found: Any) -> Path:
    path = folder / "problem.json"
    path.write_text(json.dumps(found))
    return path


def test_the_example_runs_at_its_cpu_sizes() -> None:
    with problem_file(ROOT / "examples" / "level1" / "my_problem.json") as path:
        problem = load_problem(path)
        names: dict[str, Any] = {}
        exec(compile(problem.source, str(path), "exec"), names)
    assert (problem.name, problem.number, problem.level) == ("1_My_problem", 1, 1)
    assert problem.cpu_sizes is not None
    apply_sizes(names, problem.cpu_sizes)
    x, y = names["get_inputs"]()
    assert x.shape == y.shape == (256, 1024)
    assert torch.equal(names["Model"]()(x, y), torch.clamp(x + 0.5 * y, -2, 2))
    assert not path.exists()


def test_a_whole_file_is_taken_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "whole.py").write_text(WHOLE)
    inline = written(tmp_path, {"name": "One", "number": 7, "reference": WHOLE})
    assert described_problem(inline) == ("7_One.py", WHOLE)
    beside = written(tmp_path, {"name": "One", "reference_file": "whole.py"})
    assert described_problem(beside) == ("One.py", WHOLE)


def test_a_kernel_spec_is_taken() -> None:
    name, text = described_problem(ROOT / "kernels" / "matmul_cpp.json")
    assert name == "matmul_cpp.py" and "START" in text


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "1_P.py"
    path.write_text(WHOLE)
    with problem_file(path) as found:
        assert found == path
    with pytest.raises(InputMissing, match=r"none\.json"), problem_file(tmp_path / "none.json"):
        pass


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"name": "../up"}, "name"),
        ({"number": 0}, "number"),
        ({"reference": None}, "reference"),
        ({"reference_file": "also.py"}, "reference"),
        ({"reference": "def reference(x:"}, "line 1"),
        ({"reference": "def other(x): return x"}, "function reference"),
        ({"reference": "def reference(z): return z"}, r"inputs are \(x\)"),
        ({"shapes": {}}, r"inputs\.0\.shape"),
        ({"cpu_shapes": {"m": 3}}, "cpu_shapes"),
        ({"inputs": [{"name": "x", "dtype": "float31", "shape": []}]}, r"inputs\.0\.dtype"),
        ({"inputs": [{"name": "x", "dtype": "float32", "shape": ["n"], "role": "output"}]}, "inputs"),
        ({"inputs": []}, "shapes belong to inputs"),
        ({"colour": "blue"}, "colour"),
    ],
)
def test_what_is_wrong_is_named_by_its_field(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        described_problem(written(tmp_path, told(**changes)))


def test_a_whole_file_that_lacks_a_name_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, {"name": "One", "reference": "x = 1\n"})
    with pytest.raises(ConfigurationError, match="reference: does not define Model"), problem_file(path):
        pass
