"""Asks hip-python and `rocminfo` for this machine's AMD GPUs, each in a process of its own; never imports torch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from hkbench.devices import rocminfo
from hkbench.devices.reading import SourceReport
from hkbench.errors import DeviceUnavailable
from hkbench.rocm import rocm_roots

HIP_PYTHON, ROCMINFO = "hip-python", "rocminfo"
SECONDS = 60.0


def ask_hip_python(environment: Mapping[str, str], python: str = sys.executable) -> SourceReport:
    """What `hkbench.devices.hip_facts` finds in a process of the interpreter `python`, in that environment."""
    script = Path(__file__).with_name("hip_facts.py")
    paths = [path for path in environment.get("LD_LIBRARY_PATH", "").split(os.pathsep) if path]
    libraries = {"LD_LIBRARY_PATH": os.pathsep.join([*paths, *_rocm(environment, "lib")])}
    try:
        # -P: the folder of the script is not on sys.path; its neighbours are no modules of hip-python's.
        shown = _run([python, "-P", str(script)], {**environment, **libraries})
        # The driver's library may print before it.
        return SourceReport.model_validate(json.loads(shown.splitlines()[-1]))
    except (DeviceUnavailable, IndexError, ValueError, ValidationError) as error:
        return SourceReport(source=HIP_PYTHON, error=f"asking HIP failed: {error}")


def ask_rocminfo(environment: Mapping[str, str]) -> SourceReport:
    """What the `rocminfo` on PATH or below ROCm's folder lists."""
    path = os.pathsep.join([environment.get("PATH", os.defpath), *_rocm(environment, "bin")])
    program = shutil.which(ROCMINFO, path=path)
    if program is None:
        return SourceReport(source=ROCMINFO, error="rocminfo is not installed; ROCm's package rocminfo has it")
    try:
        return SourceReport(source=ROCMINFO, gpus=rocminfo.parse(_run([program], environment)))
    except DeviceUnavailable as error:
        return SourceReport(source=ROCMINFO, error=str(error))


def _rocm(environment: Mapping[str, str], folder: str) -> list[str]:
    """Where ROCm may have that folder."""
    return [str(root / folder) for root in rocm_roots(environment)]


def _run(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Standard output. Raises DeviceUnavailable with what the program said last."""
    name = Path(command[-1]).name
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            env=environment,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DeviceUnavailable(f"{name} did not end within {SECONDS:.0f} s; is the GPU's driver hung?") from error
    except OSError as error:
        raise DeviceUnavailable(f"{name} does not start: {error}") from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise DeviceUnavailable(f"{name} ended with code {done.returncode}: {said[-1] if said else 'no message'}")
    return done.stdout
