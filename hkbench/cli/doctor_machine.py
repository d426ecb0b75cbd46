"""What hkbench doctor says of the model service, folders, disk and memory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil

from hkbench.cli.doctor_row import ANY, Row
from hkbench.errors import HkbenchError
from hkbench.fastbuild.pch_cache import default_root
from hkbench.llm.key import KEY_VARIABLES, base_url, known_key, unaddressed
from hkbench.llm.reach import reach
from hkbench.problems import find_problems, problems_root
from hkbench.prompts import load_prompts

GIB = 1 << 30
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a mount, not a file of ours
#: Free GiB below which a run is likely to fail, and what takes them.
RESULTS_GIB, RESULTS_USE = 2.0, "a build under way takes up to 0.5 GiB in it, and a sample stays with some 0.1 MiB"
SCRATCH_GIB, SCRATCH_USE = 1.0, "eval.py builds there"
CACHE_GIB, CACHE_USE = 1.0, "precompiled headers take some 0.5 GiB a set of flags"
COPIES_GIB, COPIES_USE = 3.0, "copies of a GPU's libraries up to 3 GiB"
SHARED_GIB, SHARED_USE = 1 / 16, "candidates with processes of their own share tensors in it"
MIN_INODES = 10_000  #: a build leaves some dozens of files while it is under way, a sample seven
MIN_MEMORY_GIB, BUILD_GIB = 2.0, 1.5  #: of the machine for one candidate; of one compiler at work on torch's headers


def gateway(address: str | None, model: str | None) -> Row:
    """Return whether the model service that a run would call can be reached; without one nothing is asked."""
    try:
        chosen = base_url(address)
    except HkbenchError as error:
        return Row("service", "the address is wrong", problem=str(error))
    key = known_key(chosen)
    if key is None and chosen is None:
        text = "not checked (no key or --base-url set; not needed with --replay)"
        return Row("service", text, missing_for=ANY)
    if key is None:
        problem = f"set {' or '.join(KEY_VARIABLES)} (for a local server without keys, any value works)"
        return Row("service", "an address is set, and no key", problem=problem)
    if (unaddressed_key := unaddressed(chosen)) is not None:
        return Row("service", "a key is set, and no address", problem=unaddressed_key)
    found = reach(chosen, key)
    text = f"{found.address}: {found.said}"
    if found.problem is None and model and found.models is not None and model not in found.models:
        return Row("service", text, problem=f"{model} is not among them: check --model")
    return Row("service", text, problem=found.problem)


def prompts(folder: Path) -> Row:
    """Return whether a run could begin with these prompts."""
    try:
        book = load_prompts(folder)
    except HkbenchError as error:
        return Row("prompts", f"cannot be used ({folder})", problem=str(error))
    return Row("prompts", f"{len(book.templates) + len(book.plain)} files, valid ({folder})")


def problems(folder: Path | None) -> Row:
    """Return which problems a run would take."""
    try:
        root = problems_root(folder, os.environ)
        found = find_problems(root, None)
    except HkbenchError as error:
        return Row("problems", "cannot be used", problem=str(error))
    return Row("problems", f"{len(found)} ({root})")


def disks(results: Path, on_gpu: bool) -> Iterator[Row]:
    """Free space and inodes where runs write; `on_gpu`: some of them would use a GPU."""
    cache = (CACHE_GIB + COPIES_GIB, f"{CACHE_USE}, {COPIES_USE}") if on_gpu else (CACHE_GIB, CACHE_USE)
    places = [
        ("results", results, RESULTS_GIB, RESULTS_USE),
        ("temporary files", Path(tempfile.gettempdir()), SCRATCH_GIB, SCRATCH_USE),
        ("the build cache", default_root(), *cache),
        ("shared memory", SHARED_MEMORY, SHARED_GIB, SHARED_USE),
    ]
    for what, folder, least, use in places:
        yield disk(what, folder, least, use)


def disk(what: str, folder: Path, least: float, use: str) -> Row:
    """Return the row of one place; a folder that does not exist yet has the disk of its nearest parent."""
    there = next((path for path in (folder, *folder.absolute().parents) if path.is_dir()), None)
    if there is None:
        return Row("disk", f"no place for {what} ({folder})", problem=f"no folder above {folder} exists: make it")
    try:
        free = shutil.disk_usage(there).free / GIB
        inodes = os.statvfs(there)
    except OSError as error:
        return Row("disk", f"{what} cannot be looked at ({folder})", problem=f"{error}: mount it, or choose another")
    text = f"{free:.1f} GiB free for {what} ({folder})"
    if not os.access(there, os.W_OK):
        return Row("disk", text, problem=f"{there} cannot be written by this user: choose another, or its rights")
    if free < least:
        return Row("disk", text, problem=f"at least {least:.2g} GiB: {use}; free some, or choose another place")
    if inodes.f_files and inodes.f_favail < MIN_INODES:
        problem = f"{inodes.f_favail} inodes are left, at least {MIN_INODES}: remove small files"
        return Row("disk", text, problem=problem)
    return Row("disk", text)


def memory() -> Row:
    """Return the row of the machine's memory, against what builds side by side want."""
    found, cores = psutil.virtual_memory(), len(os.sched_getaffinity(0))
    free = found.available / GIB
    text = f"{free:.1f} of {found.total / GIB:.1f} GiB available"
    if free < MIN_MEMORY_GIB:
        return Row("memory", text, problem=f"at least {MIN_MEMORY_GIB:g} GiB for one candidate: end other programs")
    builds = max(1, int(free / BUILD_GIB))
    if builds < cores:
        text += f"; a build may take {BUILD_GIB:g} GiB and {cores} go on at once: --builds {builds}"
    return Row("memory", text)
