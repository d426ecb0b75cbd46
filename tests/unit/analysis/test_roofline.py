"""The physical floor, with made-up devices: what is counted and, above all, what is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hkbench.analysis import compare, roofline
from hkbench.analysis.reference import Reference
from hkbench.analysis.roofline import PARAMETER_SHARE, least_time
from hkbench.problems import load_problem
from hkbench.records import BoundQuality, DeviceFacts, DeviceKind, Floor, SizeSet

PROBLEMS = Path(__file__).parents[3] / "problems" / "level1"
CACHE = 1 << 12
FACTS = DeviceFacts(
    kind=DeviceKind.CUDA,
    index=0,
    name="made up",
    llc_bytes=CACHE,
    bandwidth=1e12,
    peak_flops={"float32": 1e12, "bfloat16": 2e12},
)

HEAD = "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n"


def floor_of(found: Reference) -> Floor:
    inputs = found.inputs(2)
    before = [value.clone() for value in inputs]
    least = least_time(found, inputs, found.native(inputs), FACTS)
    assert least is not None
    assert all(torch.equal(one, other) for one, other in zip(inputs, before, strict=True))
    return least


def shipped(number: int, **sizes: int) -> Reference:
    (path,) = PROBLEMS.glob(f"{number}_*.py")
    problem = load_problem(path)
    problem = problem.model_copy(update={"cpu_sizes": {**(problem.cpu_sizes or {}), **sizes}})
    return Reference(problem, SizeSet.CPU, torch.device("cpu"), 1)


def written(folder: Path, forward: str, inputs: str, init: str = "pass") -> Reference:
    path = folder / "1_written.py"
    path.write_text(
        f"{HEAD}    def __init__(self):\n        super().__init__()\n        {init}\n\n    def forward(self, *given):\n"
        f"        {forward}\n\n\ndef get_inputs():\n    return {inputs}\n\n\ndef get_init_inputs():\n    return []\n"
    )
    return Reference(load_problem(path), SizeSet.FULL, torch.device("cpu"), 1)


def test_elementwise_reads_all_inputs_and_writes_beyond_the_cache() -> None:
    least = floor_of(shipped(2, tokens=16, hidden=256))
    size = 16 * 256 * 4
    assert least.bytes == 3 * size - CACHE
    assert least.operations is None and least.bound == "bytes"
    assert least.seconds == pytest.approx(least.bytes / 1e12)


def test_the_gain_of_a_norm_could_be_folded_elsewhere() -> None:
    least = floor_of(shipped(4, tokens=16, hidden=256))
    assert least.bytes == 2 * 16 * 256 * 4 - CACHE


def test_a_sum_reads_everything() -> None:
    assert floor_of(shipped(9, rows=16, columns=1024)).bytes == 16 * 1024 * 4


def test_one_dense_product_counts_its_operations_at_the_highest_rate() -> None:
    least = floor_of(shipped(17, n=128))
    assert least.operations == 2 * 128**3
    assert least.bytes == 3 * 128 * 128 * 2 - CACHE
    assert least.bound == "operations" and least.seconds == pytest.approx(2 * 128**3 / 2e12)


def test_a_linear_layer_reads_its_weights_even_in_fewer_bits() -> None:
    least = floor_of(shipped(8, tokens=32, in_features=64, out_features=128))
    assert least.operations == 2 * 32 * 64 * 128
    weights = int(PARAMETER_SHARE * 4 * (64 * 128 + 128))
    assert least.bytes == 4 * 32 * 64 + weights + 4 * 32 * 128 - CACHE


def test_causal_attention_has_no_count_of_operations() -> None:
    least = floor_of(shipped(24, heads=2, positions=64))
    assert least.operations is None
    assert least.bytes == 4 * 2 * 64 * 64 * 2 - CACHE


def test_a_table_and_its_tokens_are_not_counted() -> None:
    least = floor_of(shipped(37, vocabulary=512, hidden=64, batch=2, positions=64))
    assert least.bytes == 2 * 64 * 64 * 2 - CACHE


def test_the_logits_of_a_loss_are_read_and_the_labels_are_not_counted() -> None:
    assert floor_of(shipped(34, tokens=16, vocabulary=500)).bytes == 16 * 500 * 4


def test_scores_beside_a_mask_need_not_be_read() -> None:
    least = floor_of(shipped(5, batch=2, queries=64, keys=64))
    assert least.bytes == 2 * 64 * 64 * 4 - CACHE  # the output alone


@pytest.mark.parametrize(
    ("forward", "inputs", "read"),
    [
        ("return given[0] * 2.0", "[torch.randn(64, 64), torch.randn(64, 64)]", 64 * 64 * 4),
        ("return given[0][:32] * 2.0", "[torch.randn(64, 64)]", 0),
        ("return given[0] + given[1]", "[torch.randn(64, 64), torch.ones(64, 64)]", 64 * 64 * 4),
        ("return given[0] * given[1]", "[torch.randn(64, 64), torch.randn(64, 1).expand(64, 64)]", 64 * 64 * 4 + 256),
        ("return given[0] + given[1]", "[x := torch.randn(64, 64), x]", 64 * 64 * 4),
        ("return given[0] + torch.rand(64, 64)", "[torch.randn(64, 64)]", 0),
    ],
    ids=["unused", "half unused", "constant", "expanded", "given twice", "random"],
)
def test_only_what_decides_the_outputs_is_read(tmp_path: Path, forward: str, inputs: str, read: int) -> None:
    found = written(tmp_path, forward, inputs)
    output = next(iter(found.native(found.inputs(2)).values()))
    assert isinstance(output, torch.Tensor)
    out = max(0, output.numel() * 4 - CACHE)
    assert floor_of(found).bytes - out == read


@pytest.mark.parametrize(
    ("forward", "inputs"),
    [
        ("return torch.tril(given[0] @ given[1])", "[torch.randn(64, 64), torch.randn(64, 64)]"),
        ("return given[0] @ given[1]", "[torch.randn(64, 64).tril(), torch.randn(64, 64)]"),
        ("return given[0] @ given[1]", "[(x := torch.randn(64, 64)) + x.T, torch.randn(64, 64)]"),
        ("return given[0] @ given[0].T", "[torch.randn(64, 64)]"),
        ("return (given[0] @ given[1]).sum(-1)", "[torch.randn(64, 64), torch.randn(64, 64)]"),
        ("return (given[0] * given[1]) @ given[2]", "[torch.randn(64, 1), torch.randn(64), torch.randn(64, 64)]"),
        ("return given[0] @ given[1] @ given[2]", "[torch.randn(64, 64), torch.randn(64, 64), torch.randn(64, 4)]"),
        ("return nn.functional.conv2d(given[0], given[1])", "[torch.randn(1, 4, 9, 9), torch.randn(4, 4, 3, 3)]"),
    ],
    ids=["tril", "triangular", "symmetric", "gram", "summed", "rank one", "two", "convolution"],
)
def test_structure_that_algebra_can_use_is_not_counted(tmp_path: Path, forward: str, inputs: str) -> None:
    assert floor_of(written(tmp_path, forward, inputs)).operations is None


def test_a_view_of_an_input_costs_nothing(tmp_path: Path) -> None:
    assert floor_of(written(tmp_path, "return given[0].T", "[torch.randn(64, 65)]")).bytes == 64 * 65 * 4


def test_statistics_are_as_they_were(tmp_path: Path) -> None:
    found = written(tmp_path, "return self.norm(given[0])", "[torch.randn(64, 8)]", "self.norm = nn.BatchNorm1d(8)")
    inputs = found.inputs(1)
    native = found.native(inputs)
    before = found.model.norm.running_var.clone()
    assert least_time(found, inputs, native, FACTS) is not None
    assert torch.equal(found.model.norm.running_var, before)


def test_a_bound_says_how_near_it_is(tmp_path: Path) -> None:
    elementwise = floor_of(written(tmp_path, "return given[0] * 2.0", "[torch.randn(256, 256)]"))
    assert elementwise.quality is BoundQuality.TIGHT and elementwise.counted == pytest.approx(1.0, abs=0.02)
    product = floor_of(written(tmp_path, "return given[0] @ given[0].exp()", "[torch.randn(64, 64)]"))
    assert product.bound == "bytes" and product.quality is BoundQuality.LOOSE
    assert product.all_operations == 2 * 64**3, "which the bound by bytes says nothing of"
    gathered = floor_of(written(tmp_path, "return given[0][:8].sum()", "[torch.randn(256, 256)]"))
    assert gathered.quality is BoundQuality.LOOSE and gathered.counted == 0.0


def test_a_product_at_another_dtypes_rate_is_a_loose_bound() -> None:
    whole = {
        "seconds": 1.0,
        "bytes": 8,
        "operations": 100,
        "bound": "operations",
        "all_bytes": 8,
        "all_operations": 100,
    }
    assert Floor.model_validate({**whole, "own_rate": True}).quality is BoundQuality.TIGHT
    assert Floor.model_validate({**whole, "own_rate": False}).quality is BoundQuality.LOOSE
    assert Floor(seconds=1.0, bytes=8, bound="bytes").quality is BoundQuality.UNKNOWN, "an older record"


def test_a_device_without_peaks_has_no_floor() -> None:
    found = shipped(9, rows=4, columns=64)
    inputs = found.inputs(1)
    assert least_time(found, inputs, found.native(inputs), FACTS.model_copy(update={"bandwidth": None})) is None


@pytest.mark.parametrize(
    ("forward", "inputs", "read"),
    [
        ("return given[0].mul_(2.0)", "[torch.randn(64, 64)]", 64 * 64 * 4),
        ("return given[0].data.mul_(2.0)", "[torch.randn(64, 64)]", 64 * 64 * 4),
        ("return given[0].relu_()", "[torch.rand(64, 64) + 0.1]", 64 * 64 * 4),
        ("return given[0].relu_() + given[1]", "[x := torch.rand(64, 64) - 0.01, x]", 64 * 64 * 4),
        ("return given[0].sub_(given[0].mean())", "[torch.randn(64, 65)[:, :64]]", 64 * 64 * 4),
        ("return given[0].add_(1.0)", "[torch.randn(64, 1).expand(64, 64)]", 64 * 4),
        (
            "x = given[0]\n        return x.mul_(2.0) if x.max() > 20.0 else x * 2.0",
            "[torch.randn(64, 64)]",
            64 * 64 * 4,
        ),
        ("return given[0].fill_(3.0)", "[torch.randn(64, 64)]", 0),
        ("return given[0].unsqueeze_(0) * 2.0", "[torch.randn(64, 64)]", 64 * 64 * 4),
        ("return given[0].t_().resize_(64, 8) * 2.0", "[torch.randn(8, 64)]", 64 * 8 * 4),
    ],
    ids=[
        "product",
        "unversioned",
        "no change",
        "given twice",
        "strided",
        "refused",
        "sometimes",
        "overwritten",
        "unsqueezed",
        "resized",
    ],
)
def test_a_reference_that_works_in_place_is_seen_on_copies(
    tmp_path: Path, forward: str, inputs: str, read: int
) -> None:
    found = written(tmp_path, forward, inputs)
    given = found.inputs(2)
    before = [bytes(value.untyped_storage()) for value in given]
    forms = [(value.shape, value.stride()) for value in given]
    assert roofline._probed_bytes(lambda: found.native(given), given, found.native(given)) == read
    assert roofline._input_bytes(found, given, found.native(given)) == read
    assert [bytes(value.untyped_storage()) for value in given] == before
    assert [(value.shape, value.stride()) for value in given] == forms


def test_lists_among_the_inputs_stay_as_they_are(tmp_path: Path) -> None:
    found = written(tmp_path, "return given[0].pop() * 2.0", "[[torch.randn(64, 64)]]")
    given = found.inputs(2)
    assert roofline._input_bytes(found, given, found.native(given)) == 64 * 64 * 4
    assert len(given[0]) == 1


def plainly_differ(one: torch.Tensor, other: torch.Tensor) -> bool:
    pairs = zip(one.flatten().tolist(), other.flatten().tolist(), strict=True)
    return any(left != right and (left == left or right == right) for left, right in pairs)


@pytest.mark.parametrize("chunk", [3, 1 << 19])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.complex64, torch.int32, torch.bool])
def test_outputs_differ_where_an_element_does(dtype: torch.dtype, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(compare.CHUNKS, "cpu", chunk)
    generator = torch.Generator().manual_seed(3)
    for number in range(40):
        left = torch.randint(0, 3, (5, 4), generator=generator).to(dtype)
        if dtype.is_floating_point:
            left[left == 2] = (torch.nan, torch.inf, -0.0)[number % 3]
        right = left.T.contiguous().T if number % 2 else left.clone()
        if number % 4 > 1:
            at = tuple(torch.randint(0, size, (), generator=generator) for size in left.shape)
            right[at] = torch.randint(0, 3, (), generator=generator).to(dtype)
        wanted = plainly_differ(left, right)
        for near in (0.0, 0.4, 0.99):
            assert roofline._differ({"output": right}, {"output": left}, near) is wanted
    assert not roofline._differ({"output": torch.empty(0, 3)}, {"output": torch.empty(0, 3)})
    assert roofline._differ({"output": torch.empty(0, 3)}, {"output": torch.empty(3, 0)})
    assert roofline._differ({}, {"output": torch.empty(0)})


def test_a_judge_imports_nothing_for_it() -> None:
    """What a forked judge imports late, each verdict pays for: torch's compiler alone takes more than a second."""
    code = """
import sys
from pathlib import Path
import torch
import hkbench.evaluation.worker
from hkbench.analysis.roofline import least_time
from hkbench.analysis.reference import Reference
from hkbench.analysis.input_distributions import NAMES, Variator
from hkbench.problems import load_problem
from hkbench.records import DeviceFacts, SizeSet

facts = DeviceFacts.model_validate_json(sys.argv[1])
before = set(sys.modules)
problem = load_problem(Path(sys.argv[2])).model_copy(update={"cpu_sizes": {"n": 128}})
found = Reference(problem, SizeSet.CPU, torch.device("cpu"), 1)
inputs = found.inputs(2)
assert least_time(found, inputs, found.native(inputs), facts).operations
assert all(Variator(found).draw(name, 1) for name in NAMES)
late = {name for name in set(sys.modules) - before if not name.startswith(("problem_", "encodings."))}
assert late <= {"torch.utils._device"}, sorted(late)
"""
    (path,) = PROBLEMS.glob("17_*.py")
    command = [sys.executable, "-c", code, FACTS.model_dump_json(), str(path)]
    done = subprocess.run(command, cwd=PROBLEMS.parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
