"""The agent pipeline on one problem, a batched matrix product, with recorded replies: no key, no model, no GPU.

    python examples/simple_bmm.py                                     # C++ on the CPU, about two minutes
    python examples/simple_bmm.py --backend triton --device cuda      # where there is a GPU

It prints what became of each kernel: its length, what the compiler made of it, its time and speed-up over PyTorch, and
its largest difference from the reference. The replies are written by hand (examples/replies/simple_bmm.toml).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import hkbench
from hkbench.records import Verdict
from hkbench.store.layout import RunPaths, SamplePaths

PROBLEM = "22_Batched_matmul_bf16"
ATTEMPTS = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=["cpp", "triton"], default="cpp")
    parser.add_argument("--device", choices=["cpu", "cuda", "rocm"], default="cpu")
    parser.add_argument("--results", type=Path, help="keep the run in this folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        results = options.results or Path(scratch) / "run"
        hkbench.run(
            {
                "numbers": PROBLEM.partition("_")[0],
                "strategy": "agents",
                "attempts": ATTEMPTS,
                "backend": options.backend,
                "device": options.device,
                "replay": Path(__file__).parent / "replies" / "simple_bmm.toml",
                "keep-assembly": True,
                "trials": 2,
                "timing-runs": 10,
                "busy-wait": 5,
            },
            results=results,
        )
        problem = RunPaths(results).problem(PROBLEM)
        attempts = sorted(problem.root.glob("attempt_*/sample_1/result.json"), key=lambda path: path.parts[-3])
        print()
        for path in attempts:
            show(SamplePaths(path.parent), path.parts[-3].replace("_", " "))
    return 0


def show(sample: SamplePaths, attempt: str) -> None:
    """Print what became of one kernel."""
    verdict = Verdict.model_validate_json(sample.result.read_bytes())
    target = verdict.conditions.arch or verdict.conditions.device_name
    if sample.code.exists():
        print(f"[Synthesis] {len(sample.code.read_text().splitlines())}-line kernel ({attempt})")
    if verdict.failure is not None:
        print(f"[{'Compile' if verdict.failure.kind == 'build_error' else 'Check'}] {verdict.failure.message}")
        return
    made = len(sample.assembly.read_text()) if sample.assembly.exists() else None
    print(f"[Compile] {f'{made:,} characters of assembly' if made is not None else 'built'} ({target})")
    if verdict.candidate is not None and verdict.speedup is not None:
        time, gain = verdict.candidate.median.value, verdict.speedup.value
        print(f"[Benchmark] {time * 1e6:.1f} us/iter, {gain:.3g}x Torch")
    differences = [trial.max_abs_error for trial in verdict.trials if trial.max_abs_error is not None]
    print(f"correct (max diff {max(differences, default=0.0):.3g})")


if __name__ == "__main__":
    sys.exit(main())
