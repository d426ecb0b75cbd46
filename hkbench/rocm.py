"""Where a ROCm installation lies.

Up to 7.2 everything is straight in its folder: /opt/rocm/bin, usually a link to /opt/rocm-7.2.1. The Core SDK (7.13
previews, 7.14 and newer) goes to /opt/rocm/core-X.Y, with /opt/rocm/core a link to the newest; the meta package also
links /opt/rocm/bin and its like to there, a tarball does not. Source: "Transition guide from legacy ROCm release
stream" in the ROCm documentation of 7.14.0 and 10.0.0.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

VARIABLES = ("ROCM_HOME", "ROCM_PATH")
DEFAULT = Path("/opt/rocm")
_VERSIONED = re.compile(r"core-(\d+(?:\.\d+)*)")


def rocm_roots(environment: Mapping[str, str], default: Path = DEFAULT) -> Iterator[Path]:
    """Return folders that may hold ROCm's bin, lib and include, the likeliest first; they need not exist.

    Of what the variables name, then of `default`: the folder itself, its `core`, and its `core-X.Y`, newest first.
    """
    named = [Path(environment[name]) for name in VARIABLES if environment.get(name)]
    for folder in dict.fromkeys([*named, default]):
        yield from core_and_itself(folder)


def include_folders(environment: Mapping[str, str]) -> list[str]:
    """Return where PyTorch may look for HIP's headers, under the names that it would give."""
    roots = [*rocm_roots(environment), *filter(None, (sdk_core(), _of_program(environment)))]
    return list(dict.fromkeys(str(root / "include") for root in roots))


def sdk_core() -> Path | None:
    """Return the folder of ROCm's Core SDK where it was installed as a Python package, with PyTorch's ROCm wheels."""
    spec = importlib.util.find_spec("_rocm_sdk_core")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent.resolve()


def _of_program(environment: Mapping[str, str]) -> Path | None:
    hipcc = shutil.which("hipcc", path=environment.get("PATH"))
    root = None if hipcc is None else Path(hipcc).resolve().parents[1]
    return root.parent if root is not None and root.name == "hip" else root


def core_and_itself(folder: Path) -> Iterator[Path]:
    """Yield the folder, and the releases of the Core SDK in it."""
    yield folder
    yield folder / "core"
    found = [(match[1], path) for path in folder.glob("core-*") if (match := _VERSIONED.fullmatch(path.name))]
    for _, path in sorted(found, key=lambda one: [int(part) for part in one[0].split(".")], reverse=True):
        yield path
