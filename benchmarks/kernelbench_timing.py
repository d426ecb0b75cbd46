"""A process that times equals with KernelBench's own function, from a checkout of it.

    python benchmarks/kernelbench_timing.py CHECKOUT --device cuda

reads lines {"problem": PATH, "sizes": "full"} and answers each with a line: the times of the reference as the baseline
and then as the candidate, in ms, and the statistics that KernelBench's evaluation would store of them; or
{"error": ...}. As there, the baseline has 5 warm-ups and the candidate the function's default, both 100 trials after
a discarded one, under a fixed seed, each with a model and inputs of its own. Each answer comes from a process of its
own, forked from this one, which has imported torch but never touches the GPU.

Two things differ from KernelBench's evaluation. The problem's own dtypes are kept, where KernelBench would make all of
them float32, and inputs are made on the device, which is quicker. On a CPU its function for host time runs with three
calls of torch.cuda, which has nothing to wait for there, made empty: KernelBench itself times on GPUs only.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

from hkbench.analysis.reference import Reference
from hkbench.problems import load_problem
from hkbench.records import SizeSet

TRIALS = 100
SEED = 42
BASELINE_WARMUPS = 5


def load_timing(checkout: Path) -> ModuleType:
    """Their module by its file: the package around it asks for clients of model services, which timing does without."""
    path = checkout / "src" / "kernelbench" / "timing.py"
    spec = importlib.util.spec_from_file_location("kernelbench_timing_module", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise SystemExit(f"{path} is missing; KERNELBENCH_DIR has to name a checkout of KernelBench")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def allow_cpu() -> None:
    """Make those calls of torch.cuda empty that the function for host time makes around the work."""
    torch.cuda.synchronize = lambda *_, **__: None
    torch.cuda.empty_cache = lambda: None
    torch.cuda.get_device_name = lambda *_, **__: "CPU"


def time_equals(timing: ModuleType, problem: Path, sizes: SizeSet, device: torch.device) -> dict[str, Any]:
    """Baseline and candidate, both the problem's `Model`, one after the other."""
    method = "host_time" if device.type == "cpu" else "cuda_event"
    function = timing.get_timing_function(method)
    answer: dict[str, Any] = {"method": method}
    for side, warmups in (("baseline", {"num_warmup": BASELINE_WARMUPS}), ("candidate", {})):
        reference = Reference(load_problem(problem), sizes, device, SEED)
        inputs = reference.inputs(SEED)
        with torch.no_grad():
            times = function(reference.model, inputs, num_trials=TRIALS, verbose=False, device=device, **warmups)
        del reference, inputs  # before the other side's are made, as at the end of a call there
        answer[f"{side}_ms"] = [float(value) for value in times]
        answer[f"{side}_stats"] = timing.get_timing_stats(times)
    return answer


def answer_in_child(timing: ModuleType, request: dict[str, Any], device: str) -> str:
    """Return one line of JSON, from a process that ends with it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            answer = time_equals(timing, Path(request["problem"]), SizeSet(request["sizes"]), torch.device(device))
        except BaseException as error:  # noqa: BLE001 - the end of a process; its parent is told everything
            answer = {"error": f"{error!r} {traceback.format_exc()[-500:]}"}
        with os.fdopen(writing, "w") as pipe:
            pipe.write(json.dumps(answer))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return text or json.dumps({"error": f"the process ended with status {status}"})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--device", choices=["cuda", "cpu"], required=True)
    options = parser.parse_args()
    timing = load_timing(options.checkout)
    if options.device == "cpu":
        allow_cpu()
    device = "cpu" if options.device == "cpu" else "cuda:0"
    answers = sys.stdout
    with redirect_stdout(sys.stderr):  # where their progress messages may go
        for line in sys.stdin:
            print(answer_in_child(timing, json.loads(line), device), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
