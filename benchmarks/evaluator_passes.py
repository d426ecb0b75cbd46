#!/usr/bin/env python3
"""What the evaluator's passes over large tensors take, outside of a verdict: the floor, the comparison, the drawn
inputs.

    python benchmarks/evaluator_passes.py                                   # 9 and 1 of the shipped problems
    python benchmarks/evaluator_passes.py PROBLEM.py... --chunks 22 24 25 26 --json passes.json --time-limit 500

The first call of each is shown by itself, with the modules that it imported: an evaluator is forked for each verdict
and pays for both. Then the median of the repeats. On a GPU each call ends with a synchronisation, and `peak` is the
memory that it took beside what was held. The comparison is timed with an answer that is eager's own and with one that
is off by a rounding, once for each size of `--chunks` (elements compared at a time, as a power of two).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

from hkbench.analysis import compare, domains, roofline
from hkbench.analysis.input_distributions import NAMES, OWN, Variator
from hkbench.analysis.reference import Reference
from hkbench.cli.arguments import chosen_sizes, device_kind
from hkbench.devices.probe import available_kind, probe
from hkbench.evaluation.arena import Layout, SharedBuffer, fill, same
from hkbench.problems import load_problem
from hkbench.protocol.wire import leaves
from hkbench.records import DeviceFacts, DeviceKind, SizeSet

LEVEL = Path(__file__).resolve().parents[1] / "problems" / "level1"
SHIPPED = (9, 1)
#: Of a device whose peaks nobody states: they decide what the floor says, not what it takes.
MADE_UP = {"bandwidth": 1e12, "llc_bytes": 1 << 25, "peak_flops": {"float32": 1e14}}
SEED = 1
GIB = 1 << 30


@dataclass
class Row:
    """One part on one problem: seconds, bytes."""

    problem: str
    part: str
    first: float
    imported: int
    median: float
    repeats: int
    peak: int | None


class Passes:
    """The parts on one problem, in an order that frees what the next one does not need."""

    def __init__(self, path: Path, sizes: SizeSet, facts: DeviceFacts, device: torch.device) -> None:
        self.problem = load_problem(path)
        self.facts = facts
        self.device = device
        self.reference = Reference(self.problem, sizes, device, SEED)

    def parts(self, chunks: list[int]) -> Iterator[tuple[str, Callable[[], object]]]:
        """A name and what is clocked."""
        reference = self.reference
        inputs = reference.inputs(SEED)
        native = reference.native(inputs)
        tensors = [leaf for _, leaf in leaves(inputs, "") if isinstance(leaf, torch.Tensor)]
        bytes_in, bytes_out = (sum(t.nbytes for t in ts) for ts in (tensors, _tensors(native).values()))
        print(f"  inputs {bytes_in / GIB:.3f} GiB, outputs {bytes_out / GIB:.3f} GiB", flush=True)
        yield "reference.native", lambda: reference.native(inputs)
        yield "least_time", lambda: roofline.least_time(reference, inputs, native, self.facts)
        yield "inspect, every input", lambda: [domains.inspect(tensor) for tensor in tensors]
        yield from self.in_a_region(inputs)

        precise = reference.precise(inputs, native)
        inputs.clear()
        tensors.clear()
        pairs = [(native[path], precise[path]) for path in _tensors(native)]
        wide = [p for _, p in pairs if isinstance(p, torch.Tensor) and p.is_floating_point()]
        yield "root_mean_square", lambda: [compare.root_mean_square(leaf) for leaf in wide]
        before = compare.CHUNKS[self.device.type]
        for name, change in (("exact", torch.clone), ("rounded", _rounded)):
            got = {path: change(leaf) for path, leaf in _tensors(native).items()}
            for bits in chunks:
                compare.CHUNKS[self.device.type] = 1 << bits
                yield f"compare_output, {name}, 2^{bits}", partial(self.compared, native, precise, got)
                yield f"plainly_right, {name}, 2^{bits}", partial(_plainly_right, precise, got)
            compare.CHUNKS[self.device.type] = before
            got.clear()
        native.clear()
        precise.clear()
        pairs.clear()
        wide.clear()

        variator = Variator(reference)
        for name in (OWN, *NAMES):
            yield f"draw, {name}", partial(variator.draw, name, SEED)

    def in_a_region(self, inputs: list[Any]) -> Iterator[tuple[str, Callable[[], object]]]:
        """Yield what is done to the inputs' place around a call, in memory of this process alone."""
        layout = Layout()
        places = layout.argument(inputs)
        arena = SharedBuffer(torch.empty(layout.size, dtype=torch.uint8, device=self.device))
        yield "inputs put in place", partial(fill, arena, places, inputs)
        fill(arena, places, inputs)
        yield "inputs compared bit for bit", partial(same, arena, places, inputs)
        yield "their place filled with NaN", arena.poison

    def compared(self, native: dict[str, Any], precise: dict[str, Any], got: dict[str, torch.Tensor]) -> None:
        for path, answer in got.items():
            result, _ = compare.compare_output(path, native[path], precise[path], answer)
            if result.mismatch is not None:
                raise SystemExit(f"{self.problem.name}: {result.mismatch}")

    def clocked(self, call: Callable[[], object]) -> float:
        self._wait()
        start = time.perf_counter()
        call()
        self._wait()
        return time.perf_counter() - start

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def row(self, part: str, call: Callable[[], object], repeats: int, until: float) -> Row:
        """Return the first call, then `repeats` more, fewer where the time is up."""
        modules = set(sys.modules)
        held = self._start_counting()
        first = self.clocked(call)
        imported = len(set(sys.modules) - modules)
        times: list[float] = []
        while len(times) < repeats and (not times or time.monotonic() < until):
            times.append(self.clocked(call))
        peak = None if held is None else torch.cuda.max_memory_allocated(self.device) - held
        return Row(self.problem.name, part, first, imported, median(times), len(times), peak)

    def _start_counting(self) -> int | None:
        if self.device.type != "cuda":
            return None
        torch.cuda.reset_peak_memory_stats(self.device)
        return torch.cuda.memory_allocated(self.device)


def _tensors(found: dict[str, object]) -> dict[str, torch.Tensor]:
    return {path: leaf for path, leaf in found.items() if isinstance(leaf, torch.Tensor)}


def _plainly_right(precise: dict[str, Any], got: dict[str, torch.Tensor]) -> None:
    """What a timed call's outputs are compared by, where that settles it."""
    for path, answer in got.items():
        compare.plainly_right(precise[path], answer)


def _rounded(leaf: torch.Tensor) -> torch.Tensor:
    """Another last digit in most elements; places and choices as they are."""
    return leaf * (1.0 + torch.finfo(leaf.dtype).eps) if leaf.is_floating_point() else leaf.clone()


def _device(options: argparse.Namespace) -> tuple[DeviceFacts, torch.device]:
    kind = device_kind(options) or available_kind()
    facts = probe(kind)[0]
    if facts.bandwidth is None or facts.llc_bytes is None:
        facts = facts.model_copy(update=MADE_UP)
    return facts, torch.device("cpu" if kind is DeviceKind.CPU else "cuda:0")


def run(options: argparse.Namespace) -> int:
    until = time.monotonic() + options.time_limit
    facts, device = _device(options)
    sizes = chosen_sizes(options) or (SizeSet.CPU if device.type == "cpu" else SizeSet.FULL)
    chunks = options.chunks or [compare.CHUNKS[device.type].bit_length() - 1]
    print(f"{facts.name}, torch {torch.__version__}, {sizes.value} sizes", flush=True)
    torch.zeros(1, device=device).add_(1)  # the start of the device is nobody's
    paths = options.problems or [path for number in SHIPPED for path in LEVEL.glob(f"{number}_*.py")]
    rows: list[Row] = []
    for path in paths:
        passes = Passes(path, sizes, facts, device)
        print(f"\n{passes.problem.name}", flush=True)
        print(f"  {'part':36} {'first ms':>10} {'modules':>8} {'median ms':>10} {'of':>3} {'peak GiB':>9}", flush=True)
        for part, call in passes.parts(chunks):
            if time.monotonic() > until:
                print("  the time is up", flush=True)
                break
            row = passes.row(part, call, options.repeats, until)
            peak = "" if row.peak is None else f"{row.peak / GIB:9.2f}"
            figures = f"{row.first * 1e3:10.2f} {row.imported:8d} {row.median * 1e3:10.2f} {row.repeats:3d} {peak:>9}"
            print(f"  {part:36} {figures}", flush=True)
            rows.append(row)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", type=Path, nargs="*", help="problem files (default: 9 and 1 of the shipped ones)")
    parser.add_argument("--device", choices=["auto", *(kind.value for kind in DeviceKind.known())], default="auto")
    parser.add_argument("--sizes", choices=[sizes.value for sizes in SizeSet], help="default: cpu on a CPU, else full")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--chunks", type=int, nargs="+", help="sizes of the comparison's parts, as powers of two")
    parser.add_argument("--time-limit", type=float, default=540.0, help="seconds after which no further part begins")
    parser.add_argument("--json", type=Path)
    return run(parser.parse_args())


if __name__ == "__main__":
    raise SystemExit(main())
