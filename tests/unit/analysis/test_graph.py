"""What a traced pass says of a reference: classes, sizes, FLOPs and bytes, counted by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from support.small_problems import LINEAR, problem_file

from hkbench.analysis.facts import problem_facts
from hkbench.analysis.graph import _Tally
from hkbench.records import Convolution, GraphFacts, OperatorClass, Product, SizeSet

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"


def graph(folder: Path, forward: str, inputs: str, init: str = "pass") -> GraphFacts | None:
    source = (
        f"{HEAD}class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {init}\n"
        f"    def forward(self, x, y=None, z=None):\n        {forward}\n"
        f"def get_inputs():\n    return [{inputs}]\ndef get_init_inputs():\n    return []\n"
    )
    return problem_facts(problem_file(folder, source), SizeSet.FULL).graph


def traced(folder: Path, forward: str, inputs: str, init: str = "pass") -> GraphFacts:
    found = graph(folder, forward, inputs, init)
    assert found is not None
    return found


def test_a_linear_layer(tmp_path: Path) -> None:
    found = problem_facts(problem_file(tmp_path, LINEAR), SizeSet.FULL).graph
    assert found is not None
    assert found.operators == {"t": 1, "addmm": 1}
    assert (found.classes, found.steps) == ({"matmul": 1}, 1)
    assert found.products == (Product(batch=1, m=8, n=5, k=12, calls=1),)
    assert found.product_flops == 2 * 8 * 5 * 12 and found.other_flops == 0
    assert found.bytes == 4 * (8 * 12 + 5 * 12 + 5 + 8 * 5)
    assert found.intensity == pytest.approx(found.product_flops / found.bytes)
    assert found.product_dtype == "float32" and found.kernel_size is None


SIZES = [
    ("return x @ y", "torch.randn(6, 4), torch.randn(4)", (1, 6, 1, 4)),
    ("return torch.dot(x, y)", "torch.randn(9), torch.randn(9)", (1, 1, 1, 9)),
    ("return torch.bmm(x, y)", "torch.randn(3, 6, 4), torch.randn(3, 4, 5)", (3, 6, 5, 4)),
    ("return torch.baddbmm(z, x, y)", "torch.randn(3, 6, 4), torch.randn(3, 4, 5), torch.randn(3, 6, 5)", (3, 6, 5, 4)),
    ("return torch.einsum('ij,kj->ik', x, y)", "torch.randn(6, 4), torch.randn(5, 4)", None),
]


@pytest.mark.parametrize(("forward", "inputs", "sizes"), SIZES, ids=[case[0][7:] for case in SIZES])
def test_products(tmp_path: Path, forward: str, inputs: str, sizes: tuple[int, int, int, int] | None) -> None:
    found = traced(tmp_path, forward, inputs)
    (product,) = found.products
    if sizes is None:
        assert {product.m * product.n, product.k} == {30, 4}
    else:
        assert (product.batch, product.m, product.n, product.k) == sizes
    assert found.product_flops == 2 * product.batch * product.m * product.n * product.k
    assert found.classes == {"matmul": 1}


def test_a_convolution(tmp_path: Path) -> None:
    found = traced(
        tmp_path, "return self.c(x)", "torch.randn(2, 8, 20, 30)", "self.c = nn.Conv2d(8, 12, (3, 5), 2, 1, groups=4)"
    )
    assert found.convolutions == (
        Convolution(
            kernel=(3, 5), strides=(2, 2), padding=(1, 1), dilation=(1, 1), groups=4, transposed=False,
            in_channels=8, out_channels=12, calls=1,
        ),
    )  # fmt: skip
    assert found.kernel_size == 5 and found.classes == {"conv": 1}
    assert found.product_flops == 2 * (2 * 12 * 10 * 14) * (8 // 4 * 3 * 5)


def test_a_transposed_convolution_counts_each_input_once_a_tap(tmp_path: Path) -> None:
    found = traced(
        tmp_path, "return self.c(x)", "torch.randn(1, 4, 10)", "self.c = nn.ConvTranspose1d(4, 6, 3, stride=2)"
    )
    assert found.convolutions[0].transposed
    assert (found.convolutions[0].in_channels, found.convolutions[0].out_channels) == (4, 6)
    assert found.product_flops == 2 * (4 * 10) * (6 * 3)


def test_attention_is_one_operator(tmp_path: Path) -> None:
    q, kv = "torch.randn(2, 8, 16, 32)", "torch.randn(2, 2, 24, 32)"
    found = traced(
        tmp_path, "return F.scaled_dot_product_attention(x, y, value=z, enable_gqa=True)", f"{q}, {kv}, {kv}"
    )
    assert (found.classes, found.steps, found.products) == ({"attention": 1}, 1, ())
    assert found.product_flops == 2 * (2 * 8 * 16) * 24 * (32 + 32)


def test_attention_written_out_is_found(tmp_path: Path) -> None:
    q = "torch.randn(4, 16, 32)"
    found = traced(tmp_path, "return (x @ y.mT * 0.2).softmax(-1) @ z", f"{q}, {q}, {q}")
    assert found.classes == {"matmul": 2, "elementwise": 1, "normalisation": 1, "attention": 1}
    assert found.steps == 4  # the attention is made of the others
    assert found.product_flops == 2 * 2 * 4 * 16 * 16 * 32


def test_two_products_without_a_softmax_are_no_attention(tmp_path: Path) -> None:
    q = "torch.randn(4, 16, 32)"
    assert traced(tmp_path, "return (x @ y.mT).relu() @ z", f"{q}, {q}, {q}").classes == {"matmul": 2, "elementwise": 1}


CLASSES = [
    ("return F.max_pool2d(x, 3, 2)", "torch.randn(2, 4, 9, 9)", "pool", 2 * 4 * 16 * 9),
    ("return F.adaptive_avg_pool2d(x, 2)", "torch.randn(2, 4, 8, 8)", "pool", 2 * 4 * 64),
    ("return F.max_pool2d(x, 3, 1)", "torch.randn(2, 4, 5, 5)", "pool", 2 * 4 * 9 * 9),  # a window like its output
    ("return x.sum(1)", "torch.randn(6, 50)", "reduction", 300),
    ("return x.max(1)", "torch.randn(6, 50)", "reduction", 300),
    ("return F.layer_norm(x, (50,))", "torch.randn(6, 50)", "normalisation", 300),
    ("return F.group_norm(x, 2)", "torch.randn(6, 4, 10)", "normalisation", 240),
    ("return x.softmax(0)", "torch.randn(6, 50)", "normalisation", 300),
    ("return x.cumsum(1)", "torch.randn(6, 50)", "scan", 300),
    ("return x.topk(3)", "torch.randn(6, 50)", "sort", 0),
    ("return x[y]", "torch.randn(6, 50), torch.zeros(9, dtype=torch.int64)", "gather", 0),
    ("return F.gelu(x)", "torch.randn(6, 50)", "elementwise", 300),
    ("return F.hardswish(x)", "torch.randn(6, 50)", "elementwise", 300),
    ("return torch.cat([x, x])", "torch.randn(6, 50)", "copy", 0),
    ("return torch.linalg.inv(x)", "torch.randn(6, 6)", "other", 0),
]


@pytest.mark.parametrize(("forward", "inputs", "name", "flops"), CLASSES, ids=[case[0][7:] for case in CLASSES])
def test_classes(tmp_path: Path, forward: str, inputs: str, name: str, flops: int) -> None:
    found = traced(tmp_path, forward, inputs)
    assert name in found.classes
    assert found.other_flops == flops
    assert found.product_flops == 0 and found.product_dtype is None


@pytest.mark.parametrize(
    ("forward", "length"),
    [
        ("return x.sum(1)", 50),
        ("return x.mean()", 300),
        ("return F.layer_norm(x, (50,))", 50),
        ("return x.softmax(0)", 6),
        ("return F.batch_norm(x, None, None, training=True)", 6),
    ],
)
def test_lengths_of_reductions(tmp_path: Path, forward: str, length: int) -> None:
    assert traced(tmp_path, forward, "torch.randn(6, 50)").reductions == (length,)


def test_views_fills_and_single_numbers_are_no_steps(tmp_path: Path) -> None:
    forward = "n = torch.zeros(6, 50); s = torch.ones(()) + 1; return x.view(300).reshape(6, 50).mT, n, s"
    found = traced(tmp_path, forward, "torch.randn(6, 50)")
    assert found.steps == 0 and found.classes == {}
    assert found.operators["view"] >= 1


def test_a_recurrent_layer_is_products_and_elementwise(tmp_path: Path) -> None:
    found = traced(tmp_path, "return self.l(x)[0]", "torch.randn(5, 2, 4)", "self.l = nn.LSTM(4, 3)")
    assert set(found.classes) <= {"matmul", "elementwise", "copy"} and found.classes[OperatorClass.MATMUL] >= 5


def test_what_needs_numbers_is_traced_on_the_cpu(tmp_path: Path) -> None:
    found = traced(tmp_path, "return x @ y if float(x.sum()) < 1e9 else x", "torch.ones(6, 4), torch.ones(4, 5)")
    assert found.products == (Product(batch=1, m=6, n=5, k=4, calls=1),)


def test_the_clones_of_the_inputs_are_not_the_reference_s(tmp_path: Path) -> None:
    assert traced(tmp_path, "return x + 1", "torch.randn(6, 50)").operators == {"add": 1}


def test_a_call_that_cannot_be_read_leaves_the_facts_without_a_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("an operator with other arguments")

    monkeypatch.setattr(_Tally, "_product", fail)
    facts = problem_facts(problem_file(tmp_path, LINEAR), SizeSet.FULL)
    assert facts.graph is None
    assert [fact.name for fact in facts.outputs] == ["output"]


def test_code_that_a_trace_disturbs_runs_without(tmp_path: Path) -> None:
    forward = (
        "from torch.utils._python_dispatch import _len_torch_dispatch_stack; "
        "assert _len_torch_dispatch_stack() == 0; return x + 1"
    )
    assert graph(tmp_path, forward, "torch.randn(6, 50)") is None


def test_it_agrees_with_torch_s_flop_counter() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    from hkbench.analysis.graph import GraphTrace

    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.ConvTranspose2d(8, 4, 2, 2), torch.nn.Flatten(2),
        torch.nn.Linear(18 * 18 * 4, 7),
    ).to("meta")  # fmt: skip
    data = torch.empty(2, 3, 20, 20, device="meta")
    counter, trace = FlopCounterMode(display=False), GraphTrace()
    with counter, torch.no_grad():
        model(data)
    with trace, torch.no_grad():
        made = model(data)
    found = trace.facts([data, made])
    assert found is not None and found.product_flops == counter.get_total_flops() > 0
