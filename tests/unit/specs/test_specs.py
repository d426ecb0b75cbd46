"""Specs: what they become, and what is said of wrong ones."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.doors import ROOT

from hkbench.errors import ConfigurationError, InputMissing
from hkbench.problems import load_problem
from hkbench.specs import candidate, load_spec, load_specs, problem
from hkbench.specs.expressions import check, in_cpp, in_python

TWICE = """
void twice(const float* x, float* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = 2 * x[i];
}
"""
SHIPPED = load_specs(ROOT / "kernels")


def spec(**changes: Any) -> dict[str, Any]:
    tensor = {"kind": "tensor", "dtype": "float32", "shape": ["n"]}
    told = {
        "name": "twice",
        "language": "cpp",
        "entry": "twice",
        "source": TWICE,
        "shapes": {"n": 64},
        "arguments": [
            tensor | {"name": "x"},
            tensor | {"name": "out", "role": "output"},
            {"kind": "scalar", "name": "n", "value": "n"},
        ],
        "reference": "def reference(x):\n    return 2 * x\n",
    }
    return told | changes


def written(folder: Path, told: dict[str, Any]) -> Path:
    path = folder / "spec.json"
    path.write_text(json.dumps(told))
    return path


def run_problem(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "problem"}
    exec(compile(text, "problem.py", "exec"), names)
    return names


@pytest.mark.parametrize("one", SHIPPED, ids=lambda one: one.name)
def test_a_shipped_spec_is_a_problem_with_the_kernel_to_start_from(one: Any, tmp_path: Path) -> None:
    path = tmp_path / f"1_{one.name}.py"
    path.write_text(problem(one))
    found = load_problem(path)
    assert found.start == candidate(one)
    small = problem(one.model_copy(update={"shapes": {name: min(size, 64) for name, size in one.shapes.items()}}))
    names = run_problem(small)
    given = names["get_inputs"]()
    assert [str(tensor.dtype) for tensor in given] == [f"torch.{tensor.dtype}" for tensor in one.inputs]
    result = names["Model"](*names["get_init_inputs"]())(*given)
    assert len([result] if isinstance(result, torch.Tensor) else result) == len(one.outputs)


def test_tensors_are_filled_as_the_spec_says(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32)
    data = base64.b64encode(zlib.compress(values.tobytes())).decode()
    tensors: list[dict[str, Any]] = [
        {"name": "a", "dtype": "float32", "shape": [2, 3], "fill": "data", "data": data, "compression": "zlib"},
        {"name": "b", "dtype": "int32", "shape": ["n"], "fill": "arange"},
        {"name": "c", "dtype": "float16", "shape": ["n", 2], "fill": "uniform", "low": 2.0, "high": 3.0},
        {"name": "d", "dtype": "bool", "shape": ["n"], "fill": "ones"},
        {"name": "e", "dtype": "float64", "shape": ["cdiv(n, 3)"], "fill": "full", "value": -1.5},
        {"name": "f", "dtype": "float32", "shape": [4, 3], "strides": [1, 4], "fill": "randn", "scale": 10.0},
        {"name": "g", "dtype": "int64", "shape": ["n"], "fill": "uniform", "low": 5, "high": 7},
        {"name": "out", "dtype": "float32", "shape": ["n"], "role": "output"},
    ]
    arguments = [{"kind": "tensor", **tensor} for tensor in tensors]
    one = load_spec(written(tmp_path, spec(arguments=arguments, reference="def reference(a, *_):\n    return a\n")))
    a, b, c, d, e, f, g = run_problem(problem(one))["get_inputs"]()
    assert a.tolist() == values.reshape(2, 3).tolist()
    assert b.tolist() == list(range(64)) and b.dtype == torch.int32
    assert c.dtype == torch.float16 and c.shape == (64, 2) and float(c.min()) >= 2.0 and float(c.max()) <= 3.0
    assert bool(d.all()) and e.tolist() == [-1.5] * 22
    assert f.stride() == (1, 4) and float(f.abs().max()) > 3.0
    assert set(g.tolist()) == {5, 6}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"entry": "thrice"}, "entry"),
        ({"language": "fortran"}, "language"),
        ({"colour": "red"}, "colour"),
        ({"shapes": {"n": 0}}, "shapes.n"),
        ({"source": None}, "source"),
        ({"cpu_shapes": {"m": 3}}, "cpu_shapes names m"),
        ({"language": "cuda"}, "launch.grid"),
        ({"language": "hip", "launch": {"grid": ["n"]}}, "launch.block"),
        ({"language": "cuda", "launch": {"grid": ["n / 4"], "block": [64]}}, "launch.grid: n / 4"),
        ({"language": "cuda", "launch": {"grid": ["m"], "block": [64]}}, "there is no size m"),
        (
            {"arguments": [{"kind": "tensor", "name": "x", "dtype": "float32", "shape": ["n"]}]},
            "no argument is an output",
        ),
        ({"arguments": [{"kind": "tensor", "name": "x", "dtype": "float7", "shape": ["n"]}]}, "arguments.0.dtype"),
    ],
)
def test_a_wrong_spec_is_told_the_field_and_what_was_expected(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=r"spec\.json") as caught:
        load_spec(written(tmp_path, spec(**changes)))
    assert said in str(caught.value)


def test_files_that_are_not_there_or_no_json(tmp_path: Path) -> None:
    with pytest.raises(InputMissing, match=r"absent\.json"):
        load_specs(tmp_path / "absent.json")
    with pytest.raises(InputMissing, match="holds no"):
        load_specs(tmp_path)
    (tmp_path / "broken.json").write_text('{"name":\n')
    with pytest.raises(ConfigurationError, match="line 2"):
        load_specs(tmp_path)
    (tmp_path / "broken.json").write_text(json.dumps(spec()))
    written(tmp_path, spec())
    with pytest.raises(ConfigurationError, match="two specs"):
        load_specs(tmp_path)
    with pytest.raises(InputMissing, match=r"kernel\.cpp"):
        load_spec(written(tmp_path, spec(source=None, source_file="kernel.cpp")))


def test_expressions_in_both_languages() -> None:
    check("cdiv(n, BLOCK) * min(2, m - 1)", {"n", "m", "BLOCK"})
    assert in_python("cdiv(n,4)//2") == "cdiv(n, 4) // 2"
    assert in_cpp("cdiv(n, 4) // 2 + max(n % 3, 1)") == "((cdiv(n, 4) / 2) + larger((n % 3), 1))"
    for wrong in ("n ** 2", "print(n)", "n.real", "True", "", "1.5", "[n]"):
        with pytest.raises(ValueError, match=r"expression|allowed|no size"):
            check(wrong, {"n"})
