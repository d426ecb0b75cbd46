"""A STAND-IN for AMD's rocprofv3, for tests of the plumbing on machines without a GPU. It measures nothing.

It takes the options that hkbench gives, really runs the command after `--`, and writes the kernel trace, the agent list
or the counter collection as CSV in the documented form of ROCm 7. The launches are the lines `launch NAME` that the
command prints, warm-ups among them: the real tool traces the whole process. The numbers are made up.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
from pathlib import Path

AGENT = {"Node_Id": 1, "Agent_Type": "GPU", "Num_Xcc": 8, "Cu_Count": 304, "Name": "gfx942"}


def write(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), quoting=csv.QUOTE_NONNUMERIC)
        writer.writeheader()
        writer.writerows(rows)


def main() -> int:
    split = sys.argv.index("--")
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernel-trace", action="store_true")
    parser.add_argument("--pmc", nargs="+")
    parser.add_argument("--output-format", choices=["csv"], required=True)
    parser.add_argument("-d", type=Path, required=True)
    parser.add_argument("-o", required=True)
    given = parser.parse_args(sys.argv[1:split])
    done = subprocess.run(sys.argv[split + 1 :], check=False, stdout=subprocess.PIPE, text=True)
    sys.stdout.write(done.stdout)
    if done.returncode:
        return done.returncode
    launches = [line.split(maxsplit=1)[1] for line in done.stdout.splitlines() if line.startswith("launch ")]
    if given.kernel_trace:
        write(given.d / f"{given.o}_kernel_trace.csv", [traced(*item) for item in enumerate(launches)])
        write(given.d / f"{given.o}_agent_info.csv", [dict(AGENT)])
    else:
        rows = [counted(number, name, counter) for number, name in enumerate(launches) for counter in given.pmc]
        write(given.d / f"{given.o}_counter_collection.csv", rows)
    return 0


def traced(number: int, name: str) -> dict[str, object]:
    begin = 1_000_000 + 20_000 * number
    shape = {"Workgroup_Size_X": 256, "Workgroup_Size_Y": 1, "Workgroup_Size_Z": 1}
    grid = {"Grid_Size_X": 32768, "Grid_Size_Y": 1, "Grid_Size_Z": 1}
    times = {"Start_Timestamp": begin, "End_Timestamp": begin + 10_000}
    resources = {"LDS_Block_Size": 0, "Scratch_Size": 64, "VGPR_Count": 32, "Accum_VGPR_Count": 0, "SGPR_Count": 16}
    head = {"Kind": "KERNEL_DISPATCH", "Dispatch_Id": number, "Kernel_Name": name}
    return {**head, **times, **resources, **shape, **grid}


def counted(number: int, name: str, counter: str) -> dict[str, object]:
    head = {"Dispatch_Id": number, "Grid_Size": 32768, "Kernel_Name": name, "Workgroup_Size": 256}
    return {**head, "Counter_Name": counter, "Counter_Value": 100.0, "Start_Timestamp": 0, "End_Timestamp": 1}


if __name__ == "__main__":
    sys.exit(main())
