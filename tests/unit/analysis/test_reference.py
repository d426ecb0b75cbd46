"""The reference in higher precision, and a problem's facts."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import torch
from support.small_problems import AFFINE, LINEAR, TOP, problem_file

from hkbench.analysis import reference as reference_module
from hkbench.analysis.facts import problem_facts
from hkbench.analysis.reference import Reference
from hkbench.errors import ProblemError
from hkbench.records import ScalarFact, SizeSet, TensorFact

CPU = torch.device("cpu")


def problem_source(forward: str, inputs: str = "torch.randn(4, 6)", init: str = "") -> str:
    body = "\n".join(f"        {line}" for line in forward.splitlines())
    made = f"    def __init__(self):\n        super().__init__()\n        {init}\n" if init else ""
    return (
        f"import torch\nimport torch.nn as nn\n\nclass Model(nn.Module):\n{made}    def forward(self, x):\n{body}\n\n"
        f"def get_inputs():\n    return [{inputs}]\n\ndef get_init_inputs():\n    return []\n"
    )


def reference(folder: Path, source: str, seed: int = 1) -> Reference:
    return Reference(problem_file(folder, source), SizeSet.FULL, CPU, seed)


def precise_of(found: Reference) -> tuple[torch.Tensor, torch.Tensor]:
    """(native, precise) of the first output for one seed."""
    inputs = found.inputs(7)
    native = found.native(inputs)
    precise = found.precise(inputs, native)
    one, two = next(iter(native.values())), next(iter(precise.values()))
    assert isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor)
    return one, two


@pytest.mark.parametrize(
    ("dtype", "precision"),
    [("float32", "float64"), ("float64", "float64"), ("float16", "float32"), ("bfloat16", "float32")],
)
def test_the_precision_is_the_next_wider_one(tmp_path: Path, dtype: str, precision: str) -> None:
    source = problem_source("return (x * 1.1).sum(-1)", inputs=f"torch.randn(4, 600).to(torch.{dtype})")
    found = reference(tmp_path, source)
    native, precise = precise_of(found)
    assert found.precision == precision
    assert str(native.dtype) == f"torch.{dtype}" and str(precise.dtype) == f"torch.{precision}"


def test_mixed_inputs_are_widened_to_float64(tmp_path: Path) -> None:
    source = problem_source("return x.float() * 1.5", inputs="torch.randn(4, 6).half()")
    found = reference(tmp_path, source)
    native, precise = precise_of(found)
    assert native.dtype is torch.float32
    assert found.precision == "float64"
    assert precise.dtype is torch.float32  # the code's own cast stays


def test_integer_inputs_are_not_cast(tmp_path: Path) -> None:
    source = problem_source(
        "assert x.dtype == torch.int64\nreturn self.table[x]",
        inputs="torch.randint(0, 9, (5,))",
        init="self.table = nn.Parameter(torch.randn(9, 3))",
    )
    found = reference(tmp_path, source)
    _, precise = precise_of(found)
    assert found.precision == "float64" and precise.dtype is torch.float64


def test_buffers_and_plain_tensors_are_cast_and_the_model_is_left_alone(tmp_path: Path) -> None:
    source = problem_source(
        "return x @ self.weight + self.shift + self.plain",
        init="self.weight = nn.Parameter(torch.randn(6, 6)); self.register_buffer('shift', torch.randn(6)); "
        "self.plain = torch.randn(6)",
    )
    found = reference(tmp_path, source)
    native, precise = precise_of(found)
    assert found.precision == "float64" and precise.dtype is torch.float64
    assert torch.allclose(native.double(), precise, atol=1e-5)
    assert found.model.plain.dtype is torch.float32


@pytest.mark.parametrize(
    "forward",
    [
        "assert x.dtype == torch.float32\nreturn x * 2",
        "return torch.mm(x, torch.ones(6, 2))",
        "return {torch.float32: x}[x.dtype] * 2",
        "return (x * 2) if x.dtype == torch.float32 else (x, x)",
    ],
)
def test_code_that_insists_on_a_dtype_is_its_own_reference(tmp_path: Path, forward: str) -> None:
    found = reference(tmp_path, problem_source(forward))
    native, precise = precise_of(found)
    assert found.precision == "native"
    assert precise is native


def test_transposed_convolutions_in_float64_are_not_cudnns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[bool] = []
    flags = torch.backends.cudnn.flags

    def noted(enabled: bool) -> AbstractContextManager[None]:
        used.append(enabled)
        return flags(enabled=enabled)

    monkeypatch.setattr(torch.backends.cudnn, "flags", noted)
    monkeypatch.setattr(reference_module, "_is_wide", lambda tensor: tensor.dtype is torch.float64)
    model = "nn.Sequential(nn.Conv1d(3, 4, 3), nn.ConvTranspose1d(4, 2, 5, stride=2))"
    source = AFFINE.replace(
        "    def forward(self, x):\n            return 2.0 * x + 1.0",
        f"""    def __init__(self):
            super().__init__()
            self.layers = {model}

        def forward(self, x):
            return self.layers(x)""",
    ).replace("torch.randn(16, 24)", "torch.randn(2, 3, 16)")
    reference = Reference(problem_file(tmp_path, source), SizeSet.FULL, torch.device("cpu"), 0)
    (x,) = reference.inputs(1)
    native = reference.native([x])
    assert not used, "eager is what PyTorch users get"
    precise = reference.precise([x], native)["output"]
    assert used == [False] and reference.precision == "float64"
    torch.testing.assert_close(precise, reference.model.double()(x.double()))


def test_a_reference_that_works_in_place_leaves_the_inputs(tmp_path: Path) -> None:
    found = reference(tmp_path, problem_source("return x.add_(1.0)"))
    inputs = found.inputs(3)
    before = inputs[0].clone()
    native = found.native(inputs)
    found.precise(inputs, native)
    assert torch.equal(inputs[0], before)
    output = native["output"]
    assert isinstance(output, torch.Tensor) and torch.equal(output, before + 1.0)


@pytest.mark.parametrize(
    ("forward", "shares"),
    [
        ("return x", True),
        ("return x + 1, [x.T[2:]]", True),
        ("return x.mul_(2.0)", True),
        ("return x[:0]", False),
        ("return x + 1", False),
        ("return x.mul_(2.0).clone(), 3", False),
    ],
)
@pytest.mark.parametrize("copies", [True, False])
def test_outputs_in_the_memory_of_inputs(tmp_path: Path, forward: str, shares: bool, copies: bool) -> None:
    found = reference(tmp_path, problem_source(forward))
    assert found.shares_memory is False
    found.native(found.inputs(1), copies)
    assert found.shares_memory is shares


def test_seeds_decide_inputs_and_parameters(tmp_path: Path) -> None:
    one, two, other = (reference(tmp_path / name, LINEAR, seed) for name, seed in (("a", 1), ("b", 1), ("c", 2)))
    assert torch.equal(one.model.linear.weight, two.model.linear.weight)
    assert not torch.equal(one.model.linear.weight, other.model.linear.weight)
    assert torch.equal(one.inputs(5)[0], other.inputs(5)[0])
    assert not torch.equal(one.inputs(5)[0], one.inputs(6)[0])


def test_outputs_by_path(tmp_path: Path) -> None:
    found = reference(tmp_path, TOP)
    native = found.native(found.inputs(1))
    assert list(native) == ["output[0]", "output[1]"]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            "raise KeyError('at import')\nclass Model: pass\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n",
            "import",
        ),
        (problem_source("return x", init="raise OSError('in init')"), "in init"),
        (problem_source("return x[99]"), "forward"),
        (problem_source("return x", inputs="1 / 0"), "get_inputs"),
        (problem_source("return x").replace("return []", "return {}['no']"), "no"),
    ],
    ids=["import", "init", "forward", "inputs", "init inputs"],
)
def test_a_problem_whose_own_code_fails(tmp_path: Path, source: str, text: str) -> None:
    problem = problem_file(tmp_path, source)
    with pytest.raises(ProblemError, match=text) as caught:
        problem_facts(problem, SizeSet.FULL)
    assert str(problem.path) in str(caught.value)


def test_facts_need_no_memory(tmp_path: Path) -> None:
    """A tensor of a TiB: only the meta device can hold it."""
    source = problem_source("return (x * 2).sum(0)", inputs="torch.randn(1 << 20, 1 << 18, dtype=torch.bfloat16)")
    facts = problem_facts(problem_file(tmp_path, source), SizeSet.FULL)
    assert facts.inputs == (TensorFact(name="x", shape=(1 << 20, 1 << 18), dtype="bfloat16", strides=(1 << 18, 1)),)
    assert facts.outputs == (TensorFact(name="output", shape=(1 << 18,), dtype="bfloat16", strides=(1,)),)


@pytest.mark.parametrize(
    "forward",
    ["return x[x > x.mean()].sum() + x", "return x * float(x.max())", "return torch.from_numpy(x.numpy()) * 2"],
)
def test_code_that_needs_numbers_runs_on_the_cpu(tmp_path: Path, forward: str) -> None:
    facts = problem_facts(problem_file(tmp_path, problem_source(forward)), SizeSet.FULL)
    (output,) = facts.outputs
    assert isinstance(output, TensorFact) and output.shape == (4, 6)


def test_facts_name_what_goes_in(tmp_path: Path) -> None:
    facts = problem_facts(problem_file(tmp_path, LINEAR), SizeSet.FULL)
    assert facts.init_inputs == (ScalarFact(name="width", value="12"), ScalarFact(name="out", value="5"))
    assert [(fact.name, fact.shape) for fact in facts.parameters] == [("linear.weight", (5, 12)), ("linear.bias", (5,))]


def test_cpu_sizes_are_in_force(tmp_path: Path) -> None:
    source = (
        AFFINE.replace("torch.randn(16, 24)", "torch.randn(rows, 24)")
        + "\n    rows = 64\n    CPU_SIZES = {'rows': 3}\n"
    )
    problem = problem_file(tmp_path, source)
    for sizes, rows in ((SizeSet.FULL, 64), (SizeSet.CPU, 3)):
        (fact,) = problem_facts(problem, sizes).inputs
        assert isinstance(fact, TensorFact) and fact.shape == (rows, 24)
