"""rocprof and rocprofv2, the older profilers of ROCm 5 and 6 (deprecated from 6.4): command lines, CSV files.

Formats: "rocprof command reference" and the README of ROCm/rocprofiler (sections on plugins and counter collection).
All write one row a launch with a column for each counter. The names of the other columns differ:

rocprof          Index,KernelName,gpu-id,...,grd,wgr,lds,scr,arch_vgpr,accum_vgpr,sgpr,...,BeginNs,EndNs,...,DurationNs
rocprofv2 5.x    Dispatch_ID,GPU_ID,...,GRD,WGR,LDS,SCR,Arch_VGPR,ACCUM_VGPR,SGPR,...,Kernel_Name,Start_Timestamp,...
rocprofv2 6.x    Dispatch_ID,...,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,Arch_VGPR,...
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hkbench.profile.dispatches import Dispatch, Run
from hkbench.profile.rocprofv3 import blocks, plain_name
from hkbench.profile.tables import Row, read_table, unreadable

_NAME = ("KernelName", "Kernel_Name")
_BEGIN = ("BeginNs", "Start_Timestamp")
_END = ("EndNs", "End_Timestamp")
_NO_COUNTER = frozenset(
    word.lower()
    for word in (
        "Index", "KernelName", "gpu-id", "queue-id", "queue-index", "pid", "tid", "grd", "wgr", "lds", "scr", "vgpr",
        "arch_vgpr", "accum_vgpr", "sgpr", "fbar", "wave_size", "sig", "obj", "DispatchNs", "BeginNs", "EndNs",
        "CompleteNs", "DurationNs", "Dispatch_ID", "GPU_ID", "Queue_ID", "Queue_Index", "Grid_Size", "Workgroup_Size",
        "LDS_Per_Workgroup", "Scratch_Per_Workitem", "Kernel_Name", "Start_Timestamp", "End_Timestamp",
        "Correlation_ID",
    )
)  # fmt: skip


def trace_command(program: str, output: Path, wrapped: Sequence[str]) -> tuple[str, ...]:
    """Return rocprof's command for the times of every launch -> the file `output`."""
    return (program, "--timestamp", "on", "-o", str(output), *wrapped)


def counter_command(program: str, request: Path, output: Path, wrapped: Sequence[str]) -> tuple[str, ...]:
    """Return rocprof's command for the counters in the file `request` -> the file `output`."""
    return (program, "-i", str(request), "--timestamp", "on", "-o", str(output), *wrapped)


def trace_command_v2(program: str, folder: Path, wrapped: Sequence[str]) -> tuple[str, ...]:
    """Return rocprofv2's command for every launch's times -> a CSV file in `folder`, named by the process."""
    return (program, "--kernel-trace", "--plugin", "file", "-d", str(folder), *wrapped)


def counter_command_v2(program: str, request: Path, folder: Path, wrapped: Sequence[str]) -> tuple[str, ...]:
    """Return rocprofv2's command for the counters in the file `request` -> a CSV file in `folder`."""
    return (program, "-i", str(request), "--plugin", "file", "-d", str(folder), *wrapped)


def request_text(counters: Sequence[str]) -> str:
    """Return the input file of either: one pass."""
    return f"pmc: {' '.join(counters)}\n"


def read_trace(path: Path) -> Run:
    """Return every launch with its time, by begin of execution.

    Raises:
        InputMissing: there is no such file.
        ProfileUnreadable: it is cut off, damaged, or without usable times (rocprofv2 of ROCm 5 writes such).
    """
    return Run(path, tuple(sorted(_launches(path, timed=True), key=lambda launch: launch.begin or 0.0)))


def read_counters(path: Path) -> Run:
    """Return every launch with its counters, in the file's order. Times are not taken: counting serialises kernels."""
    launches = _launches(path, timed=False)
    if not any(launch.counters for launch in launches):
        raise unreadable(path, "holds no counter")
    return Run(path, tuple(launches))


def _launches(path: Path, timed: bool) -> list[Dispatch]:
    rows = read_table(path, ())
    if rows[0].text(*_NAME) is None:
        raise unreadable(path, f"has no column {' or '.join(_NAME)}")
    return [_launch(row, timed) for row in rows]


def _launch(row: Row, timed: bool) -> Dispatch:
    begin, seconds = _time(row) if timed else (None, None)
    threads, items = row.whole("wgr", "WGR", "Workgroup_Size"), row.whole("grd", "GRD", "Grid_Size")
    block = (threads,) if threads else None
    counters = {
        name: row.as_number(value, name)
        for name, value in row.values.items()
        if value and name.lower() not in _NO_COUNTER
    }
    return Dispatch(
        name=plain_name(row.needed(*_NAME)),
        begin=begin,
        seconds=seconds,
        grid=blocks((items,) if items else None, block),
        block=block,
        vgprs=row.whole("arch_vgpr", "Arch_VGPR", "vgpr"),
        agprs=row.whole("accum_vgpr", "ACCUM_VGPR", "Accum_VGPR"),
        sgprs=row.whole("sgpr", "SGPR"),
        lds_bytes=row.whole("lds", "LDS", "LDS_Per_Workgroup"),
        scratch_bytes=row.whole("scr", "SCR", "Scratch_Per_Workitem"),
        counters=counters,
    )


def _time(row: Row) -> tuple[float, float]:
    """Begin and duration, in seconds."""
    begin = row.as_number(row.needed(*_BEGIN), _BEGIN[0])
    end = row.as_number(row.needed(*_END), _END[0])
    duration = row.number("DurationNs")
    if begin <= 0 or end < begin:
        raise unreadable(row.path, f"line {row.line}: {begin:.0f} to {end:.0f} ns is no time of a kernel")
    return begin * 1e-9, (end - begin if duration is None else duration) * 1e-9
