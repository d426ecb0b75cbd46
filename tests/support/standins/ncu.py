"""A STAND-IN for NVIDIA's ncu, for tests of the plumbing on machines without a GPU. It measures nothing.

It takes the options that hkbench gives, refuses others as the tool does, really runs the command behind them, and
writes the raw page as CSV in the documented form. The launches are the lines `launch NAME` that the command prints,
those of its warm-ups left out as the real tool would between cudaProfilerStart and cudaProfilerStop. The numbers are
made up. A file `standin` beside this program asks for a failure: "refused", "nothing" or "sleep".
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

METRICS = {
    "dram__bytes_read.sum": ("byte", "4194304"),
    "dram__bytes_write.sum": ("byte", "4194304"),
    "gpu__time_duration.sum": ("ns", "10000"),
    "launch__registers_per_thread": ("register/thread", "32"),
    "lts__t_sector_hit_rate.pct": ("%", "51.5"),
}
FIXED = ("ID", "Process ID", "Kernel Name", "Block Size", "Grid Size")


def options() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser()
    for name, kept in (("--target-processes", "all"), ("--profile-from-start", "off"), ("--clock-control", "none"),
                       ("--page", "raw"), ("--print-units", "base"), ("--section", "LaunchStats")):  # fmt: skip
        parser.add_argument(name, choices=[kept], required=True)
    parser.add_argument("--launch-count", type=int, required=True)
    parser.add_argument("--csv", action="store_true", required=True)
    parser.add_argument("--metrics", required=True)
    parser.add_argument("--log-file", type=Path, required=True)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    return given, given.command


def row(cells: list[str]) -> str:
    return ",".join(f'"{cell}"' for cell in cells)


def main() -> int:
    given, command = options()
    asked = Path(__file__).with_name("standin")
    mode = asked.read_text() if asked.exists() else ""
    # What the real one does before anything else, each of which a cage can forbid.
    os.mkfifo(Path(os.environ["TMPDIR"], f"treetracker-{os.getpid()}"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0nv_target_process_{os.getpid()}")
    if mode == "sleep":
        time.sleep(600)
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    sys.stdout.write(done.stdout)
    if done.returncode:
        given.log_file.write_text(f"==ERROR== The application returned an error code ({done.returncode}).\n")
        return done.returncode
    if mode == "refused":
        given.log_file.write_text(
            "==PROF== Connected to process 7\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access "
            "NVIDIA GPU Performance Counters on the target device 0.\n"
        )
        return 1
    launches = [line.split(maxsplit=1)[1] for line in done.stdout.splitlines() if line.startswith("launch ")]
    passes = json.loads(Path(command[-1]).read_text())
    launches = launches[len(launches) * passes["warmups"] // (passes["warmups"] + passes["forwards"]) :]
    if mode == "nothing":
        given.log_file.write_text("==WARNING== No kernels were profiled.\n")
        return 0
    lines = ["==PROF== Connected to process 7 (python3)", row([*FIXED, *METRICS])]
    lines.append(row([""] * len(FIXED) + [unit for unit, _ in METRICS.values()]))
    for number, name in enumerate(launches[: given.launch_count]):
        fixed = [str(number), "7", name, "(256, 1, 1)", "(128, 1, 1)"]
        lines.append(row(fixed + [value for _, value in METRICS.values()]))
    given.log_file.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
