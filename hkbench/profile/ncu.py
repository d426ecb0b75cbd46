"""Nsight Compute's command line tool: how it is called, and its CSV output.

Formats: "Nsight Compute CLI", sections on output pages, metrics and units. The raw page is a header, a row of units
and a row a launch; with the details page, and with versions before 2020.2, each row is one metric of one launch
("Metric Name", "Metric Unit", "Metric Value"). Units are written out ("nsecond", "Kbyte") up to 2023 and as symbols
("ns") after; prefixes are powers of ten. Lines of the tool itself begin with `==`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hkbench.errors import InputMissing
from hkbench.profile.dispatches import Dispatch, Run
from hkbench.profile.tables import ProfileUnreadable, Row, read_text, table, unreadable
from hkbench.records.metrics import NVIDIA, NVIDIA_TENSOR
from hkbench.store.sanitize import one_line

DURATION = "gpu__time_duration.sum"
METRICS = tuple(NVIDIA)
_TENSOR_NEW, _TENSOR_OLD = NVIDIA_TENSOR  #: the tensor pipes' metric, which was renamed
MAX_LAUNCHES = 400  #: profiled; each is replayed some ten times, with the memory that it writes saved and restored
_OLD_ARCH = re.compile(r"sm_[78]\d")
_PREFIX = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_UNIT = re.compile(r"([numkKMGTP]?)(second|s|byte|B|hz|Hz)(/\w+)?")
_MEASURED = ("gpu__time", "dram__bytes", "launch__shared_mem")  #: what has a size in seconds or bytes
_SHAPE = re.compile(r"\(\s*(\d+),\s*(\d+),\s*(\d+)\s*\)")
#: Units of the GPU that count something of a launch. Newer versions list what the machine is like beside it, unasked:
#: some 200 `device__attribute_...`, and of `c2clink__`, `nvlink__`, `numa__`, `profiler__`.
_COUNTED = (
    "dram__", "fbpa__", "gpc__", "gpu__", "idc__", "l1tex__", "ltc__", "lts__", "pcie__", "sm__", "smsp__", "sys__",
)  # fmt: skip
_METRIC = re.compile(r"^[a-z0-9]+__\w+")
_SHARED = (
    "launch__shared_mem_per_block", "launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic",
)  # fmt: skip


def command(program: str, output: Path, arch: str | None, wrapped: Sequence[str]) -> tuple[str, ...]:
    """Return the command for all metrics of the launches that are profiled -> `output`, `MAX_LAUNCHES` at most.

    The clocks are left alone, as when the candidate was timed. Each launch is replayed until all metrics are counted,
    with caches flushed before: times are those of cold caches.
    """
    tensor = _TENSOR_OLD if arch is not None and _OLD_ARCH.fullmatch(arch) else _TENSOR_NEW
    return (
        program, "--target-processes", "all", "--profile-from-start", "off", "--launch-count", str(MAX_LAUNCHES),
        "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base",
        "--section", "LaunchStats", "--metrics", ",".join((*METRICS, tensor)), "--log-file", str(output), *wrapped,
    )  # fmt: skip


def read(path: Path) -> Run:
    """Return every launch, in order.

    Raises:
        InputMissing: there is no such file.
        ProfileUnreadable: it is cut off or damaged, holds no launch or as many as are profiled at most, or the tool
            wrote an error in place of it.
    """
    text = read_text(path)
    lines = text.splitlines(keepends=True)
    begin = next((number for number, line in enumerate(lines) if line.lstrip().startswith('"ID"')), None)
    if begin is None:
        said = next((line.strip() for line in lines if line.startswith("==ERROR==")), None)
        raise unreadable(path, f"holds no table{f'; the tool wrote: {one_line(said, 200)}' if said else ''}")
    kept = "".join(line for line in lines[begin:] if not line.startswith("=="))
    rows = table(kept, path, ("ID", "Kernel Name"))
    long = "Metric Name" in rows[0].values
    launches = list(_long(rows, path)) if long else list(_wide(rows, path))
    if not launches:
        raise unreadable(path, "holds no kernel")
    if len(launches) >= MAX_LAUNCHES:
        raise unreadable(path, f"holds {len(launches)} launches, of which no more are profiled: passes are cut off")
    return Run(path, tuple(launches))


def messages(path: Path) -> str:
    """Return what the tool itself wrote among the results, its errors before all; nothing where there is no file."""
    try:
        lines = read_text(path).splitlines()
    except (InputMissing, ProfileUnreadable):
        return ""
    said = [line.strip() for line in lines if line.startswith("==")]
    return "\n".join(sorted(said, key=lambda line: not line.startswith("==ERROR==")))


def _wide(rows: Sequence[Row], path: Path) -> Iterator[Dispatch]:
    if rows[0].text("ID"):
        raise unreadable(path, "has no row of units")
    units = rows[0].values
    for row in rows[1:]:
        values = {
            name: scaled(row.as_number(value, name), name, units[name], path)
            for name, value in row.values.items()
            if value and _METRIC.match(name) and _is_number(value)
        }
        yield _launch(row, values)


def _long(rows: Sequence[Row], path: Path) -> Iterator[Dispatch]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.needed("ID"), []).append(row)
    for group in groups.values():
        values = {}
        for row in group:
            name, value = row.text("Metric Name"), row.text("Metric Value")
            if name and value and _METRIC.match(name) and _is_number(value):
                values[name] = scaled(row.as_number(value, name), name, row.text("Metric Unit") or "", path)
        yield _launch(group[0], values)


def _launch(row: Row, values: Mapping[str, float]) -> Dispatch:
    shared = [values[name] for name in _SHARED if name in values]
    registers = values.get("launch__registers_per_thread")
    return Dispatch(
        name=row.needed("Kernel Name"),
        seconds=values.get(DURATION),
        grid=_shape(row, values, "Grid Size", "launch__grid_dim"),
        block=_shape(row, values, "Block Size", "launch__block_dim"),
        registers=None if registers is None else round(registers),
        # The first is all of it; versions without it give the static and the dynamic part.
        lds_bytes=None if not shared else round(shared[0] if _SHARED[0] in values else sum(shared)),
        counters={name: value for name, value in values.items() if name.startswith(_COUNTED)},
    )


def _shape(row: Row, values: Mapping[str, float], column: str, metric: str) -> tuple[int, ...] | None:
    if match := _SHAPE.fullmatch(row.text(column) or ""):
        return tuple(int(axis) for axis in match.groups())
    axes = [values[f"{metric}_{axis}"] for axis in "xyz" if f"{metric}_{axis}" in values]
    return tuple(round(axis) for axis in axes) if len(axes) == 3 else None


def _is_number(value: str) -> bool:
    """Tell a number from the texts among the metrics ("n/a", names, yes and no), which are no damage."""
    return re.fullmatch(r"[-+.,\deE]+|nan|inf", value, re.IGNORECASE) is not None and value.lower() not in (
        "nan",
        "inf",
    )


def scaled(value: float, name: str, unit: str, path: Path) -> float:
    """Return a metric in its base unit: seconds, bytes, hertz, counts.

    Raises `ProfileUnreadable` where a time or a size has a unit that is not known.
    """
    if match := _UNIT.fullmatch(unit):
        return value * _PREFIX[match[1]]
    if name.startswith(_MEASURED):
        raise unreadable(path, f"{name} has the unit {unit[:40]!r}, which is not known")
    return value  # a count or a share, whose unit is a word: "register/thread", "%", "warp"
