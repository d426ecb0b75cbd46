"""Find the lines from which inlined code was called: a report in a library's header is about the kernel's own line."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

SYMBOLIZER = "llvm-symbolizer"
SECONDS = 60.0


def callers(code_object: bytes, addresses: Collection[int], symbolizer: Path) -> Mapping[int, tuple[str, ...]]:
    """Return for each address the lines that led to it, "FILE:LINE", the kernel's own last.

    The line of the instruction itself is not among them, nor are those in between that lie in other files than the
    kernel's. What the symbolizer does not know, or does not say in time, is left out.
    """
    if not addresses or not symbolizer.is_file():
        return {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "code_object"
        file.write_bytes(code_object)
        command = [str(symbolizer), f"--obj={file}", "--inlines", "--output-style=JSON"]
        asked = "".join(f"{address:#x}\n" for address in addresses)
        try:
            done = subprocess.run(
                command, input=asked.encode(), capture_output=True, timeout=SECONDS, check=False, cwd=folder
            )
        except (OSError, subprocess.TimeoutExpired):
            return {}
    found: dict[int, tuple[str, ...]] = {}
    for line in done.stdout.splitlines():
        try:
            answer = json.loads(line)
            frames = [(str(frame["FileName"]), int(frame["Line"])) for frame in answer["Symbol"]]
            found[int(str(answer["Address"]), 0)] = _own(frames)
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _own(frames: Sequence[tuple[str, int]]) -> tuple[str, ...]:
    if not frames or not frames[-1][0]:
        return ()
    return tuple(f"{file}:{line}" for file, line in frames[1:] if file == frames[-1][0] and line)
