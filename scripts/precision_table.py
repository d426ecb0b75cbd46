#!/usr/bin/env python3
"""Measure which downgrades of the products' precision pass the tolerance; write the table of docs/precision.md.

    .venv/bin/python scripts/precision_table.py --write            # emulated on a CPU
    .venv/bin/python scripts/precision_table.py --device cuda      # TF32 and fp16 accumulation by the GPU itself

Each problem whose reference calls a matrix product or a convolution is run with these in another precision, everything
else as it is, and its outputs are compared as a candidate's: by hkbench's trials and tolerances, and by KernelBench's.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hkbench.analysis import compare  # noqa: E402
from hkbench.analysis.input_distributions import Variator, trial_plan  # noqa: E402
from hkbench.analysis.parameters import randomised  # noqa: E402
from hkbench.analysis.reference import Leaves, Reference  # noqa: E402
from hkbench.problems import load_problem  # noqa: E402
from hkbench.records import SizeSet  # noqa: E402

PAGE = ROOT / "docs" / "precision.md"
BEGIN, END = "<!-- begin table of {device}: written by scripts/precision_table.py -->\n", "<!-- end table -->"
SEED = 20
TRIALS = 5
STEP = 16  #: elements of a sum that a matrix instruction adds before it rounds to the accumulator
aten = torch.ops.aten
Product = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def tf32(x: torch.Tensor) -> torch.Tensor:
    """Round float32 to 10 bits of mantissa, to nearest, ties to even; other dtypes have no more and stay."""
    if x.dtype is not torch.float32:
        return x
    bits = x.contiguous().view(torch.int32)
    rounded = (bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF
    return torch.where(torch.isfinite(x), rounded.view(torch.float32), x)


def _bf16(x: torch.Tensor) -> torch.Tensor:
    return x.bfloat16().to(x.dtype)


def _halves(product: Product, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiply sums of two bf16 numbers each, without the product of the small ones."""
    high_a, high_b = _bf16(a), _bf16(b)
    low_a, low_b = _bf16(a - high_a), _bf16(b - high_b)
    return product(high_a, high_b) + product(high_a, low_b) + product(low_a, high_b)


def _in_fp16(product: Product, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiply in fp16, with an accumulator of fp16 that is rounded after every `STEP` elements of the sum."""
    a, b = a.half().float(), b.half().float()
    vector = b.dim() == 1
    total: torch.Tensor | None = None
    for begin in range(0, a.shape[-1], STEP):
        right = b[begin : begin + STEP] if vector else b[..., begin : begin + STEP, :]
        part = product(a[..., begin : begin + STEP], right)
        total = (part if total is None else total + part).half().float()
    assert total is not None
    return total


@dataclass
class Downgrade(TorchDispatchMode):
    """Compute products in another precision; `calls` counts them."""

    name: str
    multiply: Callable[[Product, torch.Tensor, torch.Tensor], torch.Tensor] | None
    convolves: Callable[[torch.Tensor], torch.Tensor] | None = None  #: of a convolution's operands
    calls: int = field(default=0, init=False)
    left_out: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        packet = func.overloadpacket
        added = (aten.addmm, aten.baddbmm, aten.addmv)
        if self.multiply is None and packet in (aten.mm, aten.bmm, aten.mv, *added):
            self.calls += 1
        elif packet in (aten.mm, aten.bmm, aten.mv):
            return self._product(func, args[0], args[1]).to(args[0].dtype)
        elif packet in added and not kwargs:
            plain = {aten.addmm: aten.mm, aten.baddbmm: aten.bmm, aten.addmv: aten.mv}[packet]
            return (args[0].float() + self._product(plain, args[1], args[2])).to(args[1].dtype)
        if packet is aten.convolution:
            self.calls += 1
            if self.convolves is None:
                self.left_out += self.multiply is not None
                return func(*args, **kwargs)
            return func(self.convolves(args[0]), self.convolves(args[1]), *args[2:], **kwargs)
        return func(*args, **kwargs)

    def _product(self, op: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Return the product of two tensors, in float32."""
        assert self.multiply is not None
        self.calls += 1
        return self.multiply(lambda left, right: op(left.float(), right.float()), a.float(), b.float())


def downgrades() -> list[Downgrade]:
    """Return those that are emulated; the first changes nothing."""
    return [
        Downgrade("eager", None),
        Downgrade("TF32", lambda product, a, b: product(tf32(a), tf32(b)), tf32),
        Downgrade("bf16 x 2", _halves),
        Downgrade("bf16", lambda product, a, b: product(_bf16(a), _bf16(b)), _bf16),
        Downgrade("fp16 accumulation", _in_fp16),
    ]


@contextmanager
def _real(name: str) -> Iterator[bool]:
    """Have a GPU compute in this precision; gives whether it does."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32, matmul.allow_fp16_accumulation
    matmul.allow_tf32 = cudnn.allow_tf32 = name == "TF32"
    matmul.allow_fp16_accumulation = name == "fp16 accumulation"
    try:
        yield name in ("TF32", "fp16 accumulation")
    finally:
        matmul.allow_tf32, cudnn.allow_tf32, matmul.allow_fp16_accumulation = before


def _by_gpu(name: str) -> Downgrade:
    return Downgrade(name, None if name == "TF32" else _by_library)


def _by_library(_: Product, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiply in fp16 by the library itself, whose accumulator is that of the flag in force."""
    ops: dict[int, Product] = {1: torch.mv, 2: torch.mm, 3: torch.bmm}
    return ops[b.dim()](a.half(), b.half()).float()


@dataclass
class Found:
    """By one downgrade of one problem: the largest error over its tolerance in all trials, and KernelBench's word."""

    ratio: float = 0.0
    kernelbench: bool = True
    calls: int = 0
    left_out: int = 0

    @property
    def cell(self) -> str:
        """Say who lets it pass, and by how much of hkbench's tolerance."""
        if self.left_out:
            return "-"
        who = {(True, True): "both", (True, False): "hkbench", (False, True): "KernelBench", (False, False): "neither"}
        size = f"{self.ratio:.2g}" if math.isfinite(self.ratio) else "inf"
        return f"{who[self.ratio <= 1.0, self.kernelbench]} ({size})"


def measured(path: Path, device: torch.device, sizes: SizeSet) -> dict[str, Found] | None:
    """Return what each downgrade of a problem comes to; None where its reference has no product."""
    reference = Reference(load_problem(path), sizes, device, SEED)
    found = {one.name: Found() for one in downgrades()}
    variator = Variator(reference)
    own = {name: value.clone() for name, value in reference.model.state_dict().items()}
    for number, plan in enumerate(trial_plan(TRIALS, reference.has_parameters)):
        reference.load(own if plan.parameters == "own" else randomised(reference.model, SEED + number))
        drawn = variator.draw(plan.inputs, SEED + number)
        for name, one in found.items():
            made = _made(reference, drawn.inputs, name, one, device)
            if not one.calls:
                return None
            one.ratio = max(one.ratio, _ratio(drawn.native, drawn.precise, made))
    reference.load(own)
    for name, one in found.items():
        inputs = reference.inputs(SEED)
        made, native = _made(reference, inputs, name, one, device), reference.native(inputs)
        one.kernelbench = all(
            compare.all_close(eager, _tensor(made[output]), compare.kernelbench_tolerance_for(eager.dtype))
            for output, eager in native.items()
            if isinstance(eager, torch.Tensor)
        )
    return found


def _made(reference: Reference, inputs: list[object], name: str, one: Found, device: torch.device) -> Leaves:
    with _real(name) if device.type == "cuda" else _nothing() as real, sdpa_kernel(SDPBackend.MATH):
        mode = _by_gpu(name) if real else next(other for other in downgrades() if other.name == name)
        made = reference.native(inputs, around=mode)
    one.calls, one.left_out = mode.calls, mode.left_out
    return made


@contextmanager
def _nothing() -> Iterator[bool]:
    yield False


def _ratio(native: Leaves, precise: Leaves, made: Leaves) -> float:
    worst = 0.0
    for output, eager in native.items():
        if isinstance(eager, torch.Tensor):
            result, _ = compare.compare_output(output, eager, _tensor(precise[output]), _tensor(made[output]))
            worst = max(worst, math.inf if result.mismatch and not result.worst else result.worst)
    return worst


def _tensor(leaf: object) -> torch.Tensor:
    assert isinstance(leaf, torch.Tensor)
    return leaf


def table(folder: Path, device: torch.device, sizes: SizeSet) -> str:
    """Return the table, a row a problem that has products."""
    names = [one.name for one in downgrades()]
    rows = [f"| problem | {' | '.join(names)} |", f"| --- {'| --- ' * len(names)}|"]
    for path in sorted(folder.glob("*.py"), key=lambda file: int(file.stem.split("_")[0])):
        found = measured(path, device, sizes)
        if found is not None:
            rows.append(f"| {path.stem} | {' | '.join(found[name].cell for name in names)} |")
            print(rows[-1], file=sys.stderr, flush=True)
    return "\n".join(rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure which downgrades of precision pass the tolerance.")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--problems", type=Path, default=ROOT / "problems" / "level1")
    parser.add_argument("--write", action="store_true", help="put the table into docs/precision.md")
    options = parser.parse_args()
    device = torch.device(options.device)
    found = table(options.problems, device, SizeSet.FULL if device.type == "cuda" else SizeSet.CPU)
    if not options.write:
        print(found, end="")
        return
    text = PAGE.read_text("utf-8")
    head, rest = text.split(BEGIN.format(device=options.device))
    PAGE.write_text(head + BEGIN.format(device=options.device) + found + rest[rest.index(END) :], "utf-8")


if __name__ == "__main__":
    main()
