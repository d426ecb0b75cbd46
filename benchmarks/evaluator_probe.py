"""An evaluator that also notes what the parts of its work take: `hkbench.evaluation.worker` with a clock around them.

Each evaluation appends two lines of JSON to the file that PROBE_FILE names, one of the evaluator that loads and one of
the worker that measures: which it is, and by part, how often and how many seconds in all. Parts may lie in one another
(the freezing of a runner is in every part that asks it something). On a GPU a part that does not wait for the device
leaves its work to the next one that does.
"""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hkbench.analysis import roofline
from hkbench.analysis.input_distributions import Variator
from hkbench.analysis.reference import Reference
from hkbench.evaluation import evaluate, worker
from hkbench.evaluation.checker import Checker
from hkbench.evaluation.link import RunnerLink
from hkbench.evaluation.parameters import CandidateParameters
from hkbench.evaluation.regions import Regions
from hkbench.evaluation.session import Session
from hkbench.evaluation.side import RunnerClient
from hkbench.evaluation.timing import Timing
from hkbench.profile.names import BuildFolder

#: What is clocked, and what it is for. The first three hold the parts after them.
PARTS: dict[str, tuple[Any, str]] = {
    "trials": (Session, "trials"),
    "timed runs": (Timing, "measure"),
    "witnesses: all": (Timing, "witness"),
    "static reading": (evaluate, "read_apart"),
    "parameters changed and restored": (CandidateParameters, "use"),
    "first trial repeated": (Session, "_repeat"),
    "parameters compared": (CandidateParameters, "check_unchanged"),
    "inputs compared with what was given": (Regions, "changed_input"),
    "outputs of timed runs compared": (Checker, "check_again"),
    "outputs of timed runs held against the baseline's": (Checker, "check_against"),
    "caches evicted (CPU), device seen idle (GPU)": (Timing, "_evict"),
    "inputs made": (Reference, "inputs"),
    "inputs put in place": (Regions, "put_inputs"),
    "inputs of trials drawn": (Variator, "draw"),
    "shared memory cleared": (Regions, "clear"),
    "outputs copied for the evaluator": (Regions, "outputs"),
    "reference run": (Reference, "native"),
    "reference run in higher precision": (Reference, "precise"),
    "outputs compared": (Checker, "check"),
    "requests to the runners": (RunnerClient, "try_ask"),
    "witness: kernel trace": (Timing, "_trace"),
    "witness: samples from outside": (Timing, "_sample"),
    "floor": (roofline, "least_time"),
    "files of the build read": (BuildFolder, "read"),
    "runners frozen": (RunnerLink, "freeze"),
    "runners thawed": (RunnerLink, "resume"),
    "runners ended": (RunnerLink, "end"),
}

LOADS, MEASURES = "loads", "measures"

_spent: dict[str, list[float]] = {}


def _clocked(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            _spent.setdefault(part, []).append(time.perf_counter() - start)

    return run


def _noted(worker: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        _spent.clear()
        result = function(*args, **kwargs)
        line = {part: {"calls": len(times), "seconds": sum(times)} for part, times in _spent.items()}
        with Path(os.environ["PROBE_FILE"]).open("a") as file:
            file.write(json.dumps({"worker": worker, "parts": line}) + "\n")
        return result

    return run


for _part, (_owner, _name) in PARTS.items():
    setattr(_owner, _name, _clocked(_part, getattr(_owner, _name)))
for _owner, _name, _worker in ((worker, "_load", LOADS), (worker.DeviceWorker, "_measure", MEASURES)):
    setattr(_owner, _name, _noted(_worker, getattr(_owner, _name)))

serve = worker.serve
