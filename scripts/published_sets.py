"""Published collections of kernels for KernelBench's problems: what they hold and claim, as tasks for a run.

Two are known: CUDA-L1's (`optimized_cuda_code/h100.json`) and AdaExplore's (`results/saved_kernels/kernelbench`).
A task's problem comes from a checkout of KernelBench. Where a set brings the reference that it was measured with, that
has to be the checkout's, since KernelBench changed its sizes: a claim is only comparable on the same problem.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hkbench.cli.imports import fenced
from hkbench.errors import InputMissing, UsageError
from hkbench.llm.replies import replies_file
from hkbench.problems.select import level_folder, problem_files
from hkbench.records import Reply
from hkbench.store.files import write_atomic

LEVELS = (1, 2, 3)
LEVEL_STEP = 1000  #: the number of a task is LEVEL_STEP * level + number: all levels are one run
NO_CODE = frozenset({"", "None"})  #: texts that stand where an entry has no code


@dataclass(frozen=True)
class Claim:
    """What the publishers say of one kernel."""

    correct: bool
    over_eager: float | None  #: speed-up; `None`: not claimed
    over_compile: float | None


@dataclass(frozen=True)
class Entry:
    """One kernel of a set."""

    level: int
    number: int
    code: str | None  #: `None`: published without
    claim: Claim
    reference: str | None = None  #: of the problem, where the set brings it


@dataclass(frozen=True)
class PublishedSet:
    """A known set: where its kernels are, and how its publishers decided that one is correct."""

    name: str  #: in options, and the folder's
    title: str
    backend: str
    tolerance: float  #: atol and rtol of its allclose
    claimed_on: str
    read: Callable[[Path], list[Entry]]


@dataclass(frozen=True)
class Task:
    """One entry as it stands in claims.json, by the name of its problem in the run."""

    name: str
    level: int
    number: int
    has_code: bool
    claim: Claim


def cuda_l1(place: Path) -> list[Entry]:
    """Return the entries of CUDA-L1: a checkout, or its file of one GPU, a JSON object a line."""
    path = place / "optimized_cuda_code" / "h100.json" if place.is_dir() else place
    return [_of_cuda_l1(json.loads(line)) for line in _text(path).splitlines() if line.strip()]


def _of_cuda_l1(entry: dict[str, Any]) -> Entry:
    code, speedup = entry["custom_code"], entry["score_default"]
    return Entry(
        level=entry["level_id"],
        number=entry["task_id"],
        code=None if code is None or code.strip() in NO_CODE else code,
        claim=Claim(speedup is not None, speedup, entry["score_torch_compile_default"]),
        reference=entry["ref_code"],
    )


def adaexplore(place: Path) -> list[Entry]:
    """Return the entries of AdaExplore: a checkout, or its folder of kernels with metrics_levelN.json beside them."""
    inner = place / "results" / "saved_kernels" / "kernelbench"
    root = inner if inner.is_dir() else place
    found: list[Entry] = []
    for level in LEVELS:
        metrics = root / f"metrics_level{level}.json"
        if not metrics.is_file():
            continue
        for number, told in json.loads(_text(metrics))["problems"].items():
            kernel = root / f"level{level}" / f"{number}.py"
            said = told["measured_baseline"]
            claim = Claim(said["correctness"], said["runtime_stats"]["fast_p"], None)
            found.append(Entry(level, int(number), _text(kernel) if kernel.is_file() else None, claim))
    if not found:
        raise InputMissing(f"{root} has no metrics_levelN.json: name a checkout of AdaExplore")
    return found


SETS = {
    one.name: one
    for one in (
        PublishedSet("cuda-l1", "CUDA-L1", "cuda", 1e-2, "H100", cuda_l1),
        PublishedSet("adaexplore", "AdaExplore", "triton", 5e-2, "RTX A6000", adaexplore),
    )
}


def prepare(published: PublishedSet, place: Path, kernelbench: Path, out: Path) -> list[Task]:
    """Write problems, replies and claims of a set below `out`; return its tasks.

    Raises:
        InputMissing: the set or a problem is not there.
        UsageError: `out` is not empty, or the checkout has another version of a problem than the claim is about.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not an empty folder; name a new one")
    entries = sorted(published.read(place), key=lambda entry: (entry.level, entry.number))
    problems = _problems(kernelbench, entries)
    tasks: list[Task] = []
    replies: dict[str, Reply] = {}
    folder = problems_folder(out)
    folder.mkdir(parents=True)
    for entry, problem in zip(entries, problems, strict=True):
        rest = problem.stem.partition("_")[2]
        name = f"{LEVEL_STEP * entry.level + entry.number}_{rest}"
        tasks.append(Task(name, entry.level, entry.number, entry.code is not None, entry.claim))
        if entry.code is None:
            continue
        write_atomic(folder / f"{name}.py", _text(problem))
        replies[f"{name}/attempt_1/sample_1"] = Reply(text=fenced(entry.code), model=published.title)
    write_atomic(replies_path(out), replies_file({published.backend: replies}))
    claims = {"set": published.name, "tasks": [asdict(task) for task in tasks]}
    write_atomic(out / "claims.json", json.dumps(claims, indent=1) + "\n")
    return tasks


def problems_folder(out: Path) -> Path:
    """Return the folder of a prepared set's problems; its name makes reports call the collection KernelBench."""
    return out / "KernelBench"


def replies_path(out: Path) -> Path:
    """Return the file of a prepared set's replies."""
    return out / "replies.toml"


def read_claims(out: Path) -> tuple[PublishedSet, list[Task]]:
    """Return a prepared set and its tasks. Raises InputMissing where `out` is not one."""
    told = json.loads(_text(out / "claims.json"))
    tasks = [Task(**{**task, "claim": Claim(**task["claim"])}) for task in told["tasks"]]
    return SETS[told["set"]], tasks


def _problems(kernelbench: Path, entries: Sequence[Entry]) -> list[Path]:
    """Return the problem of each entry. Raises UsageError where a reference that the set brings is another one."""
    files = {level: problem_files(level_folder(kernelbench, level)) for level in {entry.level for entry in entries}}
    absent = [f"{one.level}/{one.number}" for one in entries if one.number not in files[one.level]]
    if absent:
        raise InputMissing(f"{kernelbench} has no problem {', '.join(absent)}: name a whole checkout of KernelBench")
    found = [files[entry.level][entry.number] for entry in entries]
    other = list(_of_other_version(entries, found))
    if other:
        raise UsageError(
            f"{len(other)} problems of {kernelbench} are not those that the kernels were written for, the first one "
            f"{other[0]}: check out another version of KernelBench (its branch v0 for CUDA-L1)"
        )
    return found


def _of_other_version(entries: Sequence[Entry], files: Sequence[Path]) -> Iterator[Path]:
    for entry, path in zip(entries, files, strict=True):
        if entry.reference is not None and ast.dump(ast.parse(entry.reference)) != ast.dump(ast.parse(_text(path))):
            yield path


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputMissing(f"{path} is not there; name a whole checkout") from error
