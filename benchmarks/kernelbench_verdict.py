"""A process in which KernelBench's own evaluator evaluates one candidate, from a checkout of it.

    python benchmarks/kernelbench_verdict.py CHECKOUT --problem P.py --code C.py --build-dir D [--build-only]

prints one line of JSON: what `eval_kernel_against_ref` returned and the seconds that the call took, with those of its
calls of `load_inline` apart (`build`). It is called with 5 correctness trials, `--runs` performance trials, backend
cuda, fp32, and else its defaults. Python, torch, their modules and a CUDA context are there before the clock starts,
and with a candidate built before (`--build-only`, their `build_compile_cache`) torch finds the extension in D;
`rebuilt` says whether the call built it all the same.

Their package asks for modules that evaluation does without: clients of model services, a progress bar, a reader of .env
files. Where one of NOT_NEEDED cannot be imported an empty one stands in for it, whose functions raise (load_dotenv does
nothing). numpy and pydantic have to be there.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

TRIALS, RUNS = 5, 100
NO_GPU = "KernelBench's evaluator needs a GPU that torch can use; there is none here"
NO_GPU_CODE = 69

#: Modules that theirs import at the top and that an evaluation does not use, with the names that are taken from them.
NOT_NEEDED = {
    "requests": (),
    "dotenv": ("load_dotenv",),
    "tqdm": ("tqdm",),
    "openai": ("OpenAI",),
    "litellm": ("completion",),
}


def load_evaluator(checkout: Path) -> ModuleType:
    """Their module `kernelbench.eval`, and the parts of their package that it imports, by the files of the checkout."""
    folder = checkout.resolve() / "src" / "kernelbench"
    if not (folder / "eval.py").is_file():
        raise SystemExit(f"{folder / 'eval.py'} is missing; KERNELBENCH_DIR has to name a checkout of KernelBench")
    for name, wanted in NOT_NEEDED.items():
        try:
            importlib.import_module(name)
        except ImportError:  # it is not there, or something that it needs itself is not
            sys.modules[name] = _stand_in(name, wanted)
    package = ModuleType("kernelbench")
    package.__path__ = [str(folder)]
    sys.modules["kernelbench"] = package
    importlib.import_module("kernelbench.utils")  # as their __init__.py does: it adds functions to torch
    return importlib.import_module("kernelbench.eval")


def _stand_in(name: str, wanted: tuple[str, ...]) -> ModuleType:
    module = ModuleType(name)
    for function in wanted:
        setattr(module, function, _nothing if function == "load_dotenv" else _refusal(f"{name}.{function}"))
    return module


def _nothing() -> None:
    """In place of load_dotenv, which they call when they are imported."""


def _refusal(name: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"{name} is not installed, and an evaluation was not expected to use it")

    return refuse


def build(evaluator: ModuleType, code: str, folder: Path) -> dict[str, Any]:
    """Fill their build cache; no GPU is needed where TORCH_CUDA_ARCH_LIST is set."""
    done, printed, error = evaluator.build_compile_cache(code, verbose=False, build_dir=str(folder))
    return {"built": bool(done), "error": None if done else f"{error}\n{printed}"[-2000:]}


def evaluate(evaluator: ModuleType, problem: str, code: str, folder: Path, runs: int = RUNS) -> dict[str, Any]:
    """Return one evaluation and its seconds of wall clock."""
    import torch

    device = torch.device("cuda:0")
    torch.zeros(1, device=device)
    torch.cuda.synchronize(device)
    before, builds = libraries(folder), timed_builds()
    started = time.perf_counter()
    result = evaluator.eval_kernel_against_ref(
        problem,
        code,
        num_correct_trials=TRIALS,
        num_perf_trials=runs,
        measure_performance=True,
        build_dir=str(folder),
        device=device,
        backend="cuda",
        precision=torch.float32,
    )
    torch.cuda.synchronize(device)
    seconds = time.perf_counter() - started
    rebuilt = libraries(folder) != before
    return described(result) | {"seconds": seconds, "build": sum(builds), "rebuilt": rebuilt}


def timed_builds() -> list[float]:
    """Return the seconds of each call of `load_inline` from now on, for whoever imports it from now on."""
    builder = importlib.import_module("torch.utils.cpp_extension")
    stock = builder.load_inline
    taken: list[float] = []

    @functools.wraps(stock)
    def load_inline(*args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        try:
            return stock(*args, **kwargs)
        finally:
            taken.append(time.perf_counter() - started)

    vars(builder)["load_inline"] = load_inline
    return taken


def described(result: Any) -> dict[str, Any]:
    """Return what their result says; `None` is how they answer when another process holds a build's lock."""
    if result is None:
        return {"compiled": False, "correct": False, "timed": False, "speedup": None, "metadata": {"lock": "held"}}
    timed = result.runtime > 0 and result.ref_runtime > 0
    return {
        "compiled": result.compiled,
        "correct": result.correctness,
        "timed": timed,
        "speedup": result.ref_runtime / result.runtime if timed else None,
        "metadata": {key: str(value)[:500] for key, value in result.metadata.items()},
    }


def libraries(folder: Path) -> dict[str, int]:
    """Return the built extensions and when each was written, in ns."""
    return {str(path): path.stat().st_mtime_ns for path in sorted(folder.rglob("*.so"))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--problem", type=Path, required=True)
    parser.add_argument("--code", type=Path, required=True)
    parser.add_argument("--build-dir", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=RUNS, help="performance trials")
    parser.add_argument("--build-only", action="store_true")
    options = parser.parse_args()
    options.build_dir.mkdir(parents=True, exist_ok=True)
    with redirect_stdout(sys.stderr):  # where their progress messages may go
        evaluator = load_evaluator(options.checkout)
        code = options.code.read_text(encoding="utf-8")
        if options.build_only:
            answer = build(evaluator, code, options.build_dir.resolve())
        else:
            import torch

            if not torch.cuda.is_available():
                print(NO_GPU)
                return NO_GPU_CODE
            problem = options.problem.read_text(encoding="utf-8")
            answer = evaluate(evaluator, problem, code, options.build_dir.resolve(), options.runs)
    print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
