"""rocprofv3 (ROCprofiler-SDK): its command lines, and its CSV files read by their headers.

Formats: "Using rocprofv3" in the ROCprofiler-SDK documentation, sections on kernel trace, counter collection and
output file fields, releases 6.2 to 7.1. They differ in columns: 6.x gives Private_Segment_Size and
Group_Segment_Size, 7.x LDS_Block_Size, Scratch_Size and registers. The documentation calls Grid_Size a number of
blocks; what is written is work-items (issue 57 and others of ROCm/rocprofiler-sdk).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from hkbench.profile.derived import Agent
from hkbench.profile.dispatches import Dispatch, Run
from hkbench.profile.tables import Row, read_table, unreadable

TRACE_SUFFIX = "_kernel_trace.csv"
COUNTERS_SUFFIX = "_counter_collection.csv"
AGENTS_SUFFIX = "_agent_info.csv"
_AXES = ("X", "Y", "Z")


def trace_command(program: str, folder: Path, name: str, wrapped: Sequence[str]) -> tuple[str, ...]:
    """Return the command for every launch's times, shapes and resources -> `folder/name_kernel_trace.csv`.

    The format is always named: from 7.0 the default is a database.
    """
    options = ("--kernel-trace", "--output-format", "csv", "-d", str(folder), "-o", name)
    return (program, *options, "--", *wrapped)


def counter_command(
    program: str, counters: Sequence[str], folder: Path, name: str, wrapped: Sequence[str]
) -> tuple[str, ...]:
    """Return the counters of every launch -> `folder/name_counter_collection.csv`. They have to fit one pass."""
    options = ("--pmc", *counters, "--output-format", "csv", "-d", str(folder), "-o", name)
    return (program, *options, "--", *wrapped)


def read_trace(path: Path) -> Run:
    """Return every launch of a kernel trace, by begin of execution.

    Raises:
        InputMissing: there is no such file.
        ProfileUnreadable: it is cut off or damaged.
    """
    rows = read_table(path, ("Kernel_Name", "Start_Timestamp", "End_Timestamp"))
    launches = [_launch(row) for row in rows if row.text("Kind") in (None, "KERNEL_DISPATCH")]
    return Run(path, tuple(sorted(launches, key=lambda launch: launch.begin or 0.0)))


def _launch(row: Row) -> Dispatch:
    begin, end = (row.as_number(row.needed(name), name) for name in ("Start_Timestamp", "End_Timestamp"))
    if end < begin:
        raise unreadable(row.path, f"line {row.line}: the kernel ends before it begins")
    block = _axes(row, "Workgroup_Size")
    return Dispatch(
        name=plain_name(row.needed("Kernel_Name")),
        begin=begin * 1e-9,
        seconds=(end - begin) * 1e-9,
        grid=blocks(_axes(row, "Grid_Size"), block),
        block=block,
        vgprs=row.whole("VGPR_Count"),
        agprs=row.whole("Accum_VGPR_Count"),
        sgprs=row.whole("SGPR_Count"),
        lds_bytes=row.whole("LDS_Block_Size", "Group_Segment_Size"),
        scratch_bytes=row.whole("Scratch_Size", "Private_Segment_Size"),
    )


def read_counters(path: Path) -> Run:
    """Return every launch of a counter collection, by dispatch number; a row of the file is one counter.

    Times are not taken: counting serialises kernels. Raises as `read_trace` does, and `ProfileUnreadable` for a
    counter that a launch has twice.
    """
    rows = read_table(path, ("Dispatch_Id", "Kernel_Name", "Counter_Name", "Counter_Value"))
    first: dict[int, Row] = {}
    values: dict[int, dict[str, float]] = {}
    for row in rows:
        number = round(row.as_number(row.needed("Dispatch_Id"), "Dispatch_Id"))
        first.setdefault(number, row)
        counters = values.setdefault(number, {})
        name = row.needed("Counter_Name")
        if name in counters:
            raise unreadable(path, f"line {row.line}: dispatch {number} has {name} twice; several processes wrote it")
        counters[name] = row.as_number(row.needed("Counter_Value"), "Counter_Value")
    return Run(path, tuple(_counted(first[number], values[number]) for number in sorted(first)))


def _counted(row: Row, counters: dict[str, float]) -> Dispatch:
    size, items = row.whole("Workgroup_Size"), row.whole("Grid_Size")
    block = (size,) if size else None
    return Dispatch(
        name=plain_name(row.needed("Kernel_Name")),
        grid=blocks((items,) if items else None, block),
        block=block,
        vgprs=row.whole("VGPR_Count"),
        agprs=row.whole("Accum_VGPR_Count"),
        sgprs=row.whole("SGPR_Count"),
        lds_bytes=row.whole("LDS_Block_Size"),
        scratch_bytes=row.whole("Scratch_Size"),
        counters=counters,
    )


def read_agent(path: Path) -> Agent:
    """Return the GPU of an agent list. Raises `ProfileUnreadable` too where it has several that differ."""
    rows = [row for row in read_table(path, ("Agent_Type", "Cu_Count", "Num_Xcc")) if row.text("Agent_Type") == "GPU"]
    found = {(row.whole("Cu_Count") or 0, row.whole("Num_Xcc") or 0) for row in rows}
    if len(found) != 1 or 0 in (both := found.pop()):
        raise unreadable(path, "does not name compute units and XCDs of one GPU")
    return Agent(compute_units=both[0], xcds=both[1])


def plain_name(name: str) -> str:
    """Return the name without what the tools append: `.kd`, ` (.kd)`, ` [clone .kd]`."""
    for ending in (" [clone .kd]", " (.kd)", ".kd"):
        name = name.removesuffix(ending)
    return name


def blocks(items: tuple[int, ...] | None, block: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Return the blocks along each axis, from work-items and threads of a block."""
    if items is None or block is None or 0 in block or len(items) != len(block):
        return None
    return tuple(math.ceil(count / size) for count, size in zip(items, block, strict=True))


def _axes(row: Row, name: str) -> tuple[int, ...] | None:
    found = tuple(value for axis in _AXES if (value := row.whole(f"{name}_{axis}")) is not None)
    return found if len(found) == len(_AXES) else None
