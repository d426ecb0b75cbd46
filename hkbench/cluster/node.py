"""What a node is, found on the node without opening a device; and how nodes differ."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from hkbench import __version__
from hkbench.errors import ToolchainUnavailable, Unavailable
from hkbench.records import DeviceKind, NodeFacts
from hkbench.sandbox.environment import runner_path
from hkbench.toolchain.hip import find_hip, find_torch
from hkbench.toolchain.programs import find_cxx, find_program

_PACKAGE = Path(__file__).resolve().parents[1]
_DRIVERS = ("/proc/driver/nvidia/version", "/sys/module/amdgpu/version")
_VERSION_SECONDS = 20.0


class NodesDiffer(Unavailable):
    """Verdicts of these nodes cannot be held against each other."""


def describe_node(name: str, cards: int, cores: int) -> NodeFacts:
    """Describe the node on which this runs."""
    return NodeFacts(
        name=name,
        host=platform.node(),
        kind=_kind() if cards else DeviceKind.CPU,
        cards=cards,
        cores=cores,
        decisive={
            "hkbench": f"{__version__} (sources {package_hash()})",
            "torch": _torch(),
            "python": platform.python_version(),
        },
        tools=dict(_tools()),
    )


def package_hash() -> str:
    """Return a short hash of hkbench's own sources: its version alone does not tell two checkouts apart."""
    digest = sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(str(path.relative_to(_PACKAGE)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def check_same(nodes: Sequence[NodeFacts]) -> None:
    """Check that all nodes judge alike.

    Raises:
        NodesDiffer: hkbench, torch or Python differ; the message says where.
    """
    said = list(_differences(nodes, "decisive"))
    if said:
        raise NodesDiffer(
            f"the nodes of the cluster do not judge alike: {'; '.join(said)}. Install the same on all nodes (one "
            "environment on a shared folder, or one image), or leave out nodes"
        )


def other_differences(nodes: Sequence[NodeFacts]) -> list[str]:
    """Return in what else the nodes differ, a line each."""
    return list(_differences(nodes, "tools"))


def _differences(nodes: Sequence[NodeFacts], of: str) -> Iterator[str]:
    told: list[tuple[str, dict[str, str]]] = [(node.name, getattr(node, of)) for node in nodes]
    for what in dict.fromkeys(key for _, values in told for key in values):
        by_value: dict[str, list[str]] = defaultdict(list)
        for name, values in told:
            by_value[values.get(what, "none")].append(name)
        if len(by_value) > 1:
            yield f"{what} is " + ", but ".join(f"{value} on {', '.join(names)}" for value, names in by_value.items())


def _kind() -> DeviceKind:
    """Return the kind of GPU that this node's torch is built for."""
    with suppress(ToolchainUnavailable, OSError):
        text = (find_torch().root / "version.py").read_text(encoding="utf-8")
        if re.search(r"^hip\b.*= '", text, re.MULTILINE):
            return DeviceKind.ROCM
        if re.search(r"^cuda\b.*= '", text, re.MULTILINE):
            return DeviceKind.CUDA
    return DeviceKind.CPU


def _torch() -> str:
    try:
        return find_torch().version
    except ToolchainUnavailable:
        return "none"


def _tools() -> Iterator[tuple[str, str]]:
    yield "system", platform.platform()
    for driver in _DRIVERS:
        with suppress(OSError):
            yield "driver", Path(driver).read_text(errors="replace").splitlines()[0][:120]
    with suppress(ToolchainUnavailable):
        yield "C++ compiler", _version(find_cxx())
    with suppress(ToolchainUnavailable):
        hip = find_hip()
        yield "HIP", f"{hip.version}, {hip.compiler}"
    if (nvcc := find_program("nvcc")) is not None:
        yield "nvcc", _version(nvcc)


def _version(program: str) -> str:
    environment = {"PATH": runner_path(), "LC_ALL": "C"} | {
        name: os.environ[name] for name in ("HOME",) if name in os.environ
    }
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, errors="replace", check=False,
            timeout=_VERSION_SECONDS, env=environment,
        )  # fmt: skip
        lines = [line.strip() for line in done.stdout.splitlines() if any(letter.isdigit() for letter in line)]
        named = [line for line in lines if "release" in line]
        return (named or lines or ["does not say"])[0]
    return "does not run"
