"""KernelBench's batch evaluation of the same candidates, by its own `eval_kernel_against_ref` from a checkout.

Its scripts/eval_from_generations.py (commit 423217d) works on its own data sets and run folders; here the same is done
around the same function:

1. what has to be built is built first, side by side, by its `build_compile_cache` (there: `build_cache`, 20 workers);
   candidates without a build are left out, which costs nothing there either;
2. candidates are taken as many at a time as there are GPUs, each in a fresh process that imports torch; all of them
   are waited for before the next ones begin, 180 s at the most;
3. `eval_kernel_against_ref` with its script's settings: five trials, 100 timed runs, CUDA events, backend `cuda`. One
   run there has one precision for all problems; here each problem has that of its name.

    python benchmarks/kernelbench_batch.py CHECKOUT build|evaluate REQUEST.json

is one such process: it prints one line of JSON. Their module is loaded as kernelbench_verdict.py loads it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.kernelbench_verdict import load_evaluator

BUILDS = 20
TRIALS, TIMED_RUNS = 5, 100
LIMIT = 180.0  #: seconds of one candidate, and of all that are evaluated beside it
_PRECISION = re.compile(r"_(fp32|fp16|bf16)$")


@dataclass(frozen=True)
class Task:
    """One candidate and its problem."""

    name: str
    reference: str
    candidate: str
    precision: str
    needs_build: bool


@dataclass
class Outcome:
    """What the evaluation of some candidates took. Seconds."""

    gpus: int
    build_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    begin: float = 0.0  #: of the evaluations, since the epoch
    end: float = 0.0
    answers: list[dict[str, Any]] = field(default_factory=list)
    utilisation: list[float | None] = field(default_factory=list)

    @property
    def per_hour(self) -> float | None:
        """Verdicts per hour of the evaluations, as if all builds had been there before."""
        return len(self.answers) * 3600.0 / self.evaluation_seconds if self.evaluation_seconds else None

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"per_hour": self.per_hour}


def precision_of(problem: str) -> str:
    """fp32, fp16 or bf16, from the end of a problem's name; fp32 where it says nothing."""
    found = _PRECISION.search(problem)
    return found.group(1) if found else "fp32"


def evaluate_all(
    checkout: Path, tasks: Sequence[Task], gpus: int, environment: dict[str, str], left: Callable[[], float]
) -> Outcome:
    """Builds, then evaluates while `left` says that there are seconds enough; prints each answer.

    What the end of the time cuts off is not counted.
    """
    outcome = Outcome(gpus)
    with tempfile.TemporaryDirectory(prefix="hkbench-kernelbench-") as scratch:
        folder = Path(scratch)

        def answer(do: str, task: Task, device: int) -> dict[str, Any]:
            request = folder / f"{task.name.replace('/', '-')}.json"
            build = folder / request.stem
            build.mkdir(exist_ok=True)
            request.write_text(json.dumps(asdict(task) | {"device": device, "build_dir": str(build)}))
            return {"name": task.name, **_process(checkout, do, request, environment, min(LIMIT, left()))}

        began = time.perf_counter()
        built = [task for task in tasks if task.needs_build]
        with ThreadPoolExecutor(BUILDS) as pool:
            for told in pool.map(lambda task: answer("build", task, 0), built):
                print(f"kernelbench build {told}", flush=True)
        outcome.build_seconds = time.perf_counter() - began if built else 0.0
        outcome.begin, began, longest = time.time(), time.perf_counter(), LIMIT / 6
        with ThreadPoolExecutor(gpus) as pool:
            for first in range(0, len(tasks), gpus):
                if left() < 1.2 * longest:
                    print("kernelbench: the time limit is near", flush=True)
                    break
                started = time.perf_counter()
                together = enumerate(tasks[first : first + gpus])
                answers = list(pool.map(lambda pair: answer("evaluate", pair[1], pair[0]), together))
                if any("cut" in told for told in answers):
                    break
                longest = max(time.perf_counter() - started, longest if first else 0.0)
                outcome.answers += answers
                outcome.evaluation_seconds = time.perf_counter() - began
                for told in answers:
                    print(f"kernelbench {told}", flush=True)
        outcome.end = time.time()
    return outcome


def _process(checkout: Path, do: str, request: Path, environment: dict[str, str], limit: float) -> dict[str, Any]:
    """Return the answer of one fresh process, with the seconds that it took from its start to its end."""
    command = [sys.executable, __file__, str(checkout), do, str(request)]
    started = time.perf_counter()
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        told: dict[str, Any] = {"error": f"no answer within {limit:.0f} s"} | ({} if limit == LIMIT else {"cut": True})
    else:
        lines = done.stdout.splitlines()
        told = json.loads(lines[-1]) if done.returncode == 0 and lines else {"error": done.stderr[-1000:]}
    return told | {"seconds": time.perf_counter() - started}


def build(evaluation: Any, request: dict[str, Any]) -> dict[str, Any]:
    done, _, error = evaluation.build_compile_cache(request["candidate"], build_dir=request["build_dir"])
    return {"built": done} if error is None else {"built": done, "error": str(error)[-300:]}


def evaluate(evaluation: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Their evaluation as their script calls it; what it lets out is a failed candidate there too."""
    import torch

    try:
        found = evaluation.eval_kernel_against_ref(
            original_model_src=request["reference"],
            custom_model_src=request["candidate"],
            measure_performance=True,
            timing_method="cuda_event",
            verbose=False,
            num_correct_trials=TRIALS,
            num_perf_trials=TIMED_RUNS,
            build_dir=request["build_dir"],
            device=torch.device(f"cuda:{request['device']}"),
            backend="cuda",
            precision=evaluation.get_torch_dtype_from_string(request["precision"]),
        )
    except Exception as error:  # noqa: BLE001 - as there
        return {"compiled": False, "correct": False, "error": repr(error)[-300:]}
    if found is None:  # a lock was held while it was built
        return {"compiled": False, "correct": False, "error": "no result"}
    return {
        "compiled": found.compiled,
        "correct": found.correctness,
        "runtime_ms": found.runtime,
        "reference_ms": found.ref_runtime,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("do", choices=["build", "evaluate"])
    parser.add_argument("request", type=Path)
    options = parser.parse_args()
    request = json.loads(options.request.read_text())
    # What a candidate's compiler says goes past sys.stdout: the answer has the descriptor to itself.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with redirect_stdout(sys.stderr):
        evaluation = load_evaluator(options.checkout)
        answer = (build if options.do == "build" else evaluate)(evaluation, request)
    print(json.dumps(answer), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
