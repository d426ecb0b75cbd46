"""Each device of a run: what it measures at the moment, and how it does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hkbench.drivers.base import Reading
from hkbench.headline import SEPARATOR
from hkbench.monitor.format import duration, gibibytes
from hkbench.records import Record, SampleKey, Stage
from hkbench.store.sanitize import one_line
from hkbench.store.state import RunState


class SampleNow(Record):
    """A sample that a device is lent to."""

    key: SampleKey
    stage: Stage | None
    seconds: float  #: since it came to this stage


class DeviceNow(Record):
    """One device at one moment."""

    index: int  #: in the run
    name: str
    samples: tuple[SampleNow, ...] = ()  #: that it is lent to
    reading: Reading | None = None  #: `None` where its driver was not asked


def devices_now(state: RunState, now: float, readings: Mapping[int, Reading]) -> tuple[DeviceNow, ...]:
    """Return the devices by index, as the journal names them; of a finished run none has a sample."""
    measured = state.measured
    return tuple(
        DeviceNow(
            index=place.index,
            name=place.name,
            samples=tuple(
                SampleNow(key=key, stage=sample.stage, seconds=max(0.0, now - sample.since))
                for key, sample in measured.get(place.index, ())
            ),
            reading=readings.get(place.index),
        )
        for place in state.devices
    )


def device_lines(devices: tuple[DeviceNow, ...], note: str | None, most: int) -> list[Text]:
    """Return a line for each; where they are more than `most`, one for all. `note` says why there are no readings."""
    if len(devices) <= most:
        return [_line(f"device {device.index}", _one(device, note)) for device in devices]
    return [_line("devices", _all(devices, note))]


def _line(name: str, what: str) -> Text:
    return Text.assemble((f"{name:<12} ", "bold"), what, no_wrap=True, overflow="ellipsis", end="\n")


def _one(device: DeviceNow, note: str | None) -> str:
    parts = [measuring(device)]
    parts.append(", ".join(_figures(device.reading)) if device.reading is not None else note or "no reading yet")
    return SEPARATOR.join(part for part in parts if part)


def measuring(device: DeviceNow) -> str:
    """Return text such as `4_RMSNorm_fp32 1.2 time 12 s`, of each sample."""
    return ", ".join(map(_measured, device.samples)) or "idle"


def _measured(sample: SampleNow) -> str:
    key = sample.key
    return f"{one_line(key.problem, 30)} {key.attempt}.{key.sample} {sample.stage} {duration(sample.seconds)}"


def _figures(reading: Reading) -> Iterator[str]:
    if reading.utilisation is not None:
        yield f"{100 * reading.utilisation:.0f} % busy"
    if reading.temperature is not None:
        yield f"{reading.temperature:.0f} °C"
    if reading.memory_used is not None:
        yield f"{gibibytes(reading.memory_used)} of {gibibytes(reading.memory_total)} GiB"
    if reading.clock is not None:
        yield f"{reading.clock:.0f} MHz"
    if reading.power is not None:
        yield f"{reading.power:.0f} W"


def _all(devices: tuple[DeviceNow, ...], note: str | None) -> str:
    at_work = sum(bool(device.samples) for device in devices)
    parts = [f"{at_work} of {len(devices)} lent"]
    found = [device.reading for device in devices if device.reading is not None]
    busy = [reading.utilisation for reading in found if reading.utilisation is not None]
    hot = [reading.temperature for reading in found if reading.temperature is not None]
    if busy:
        parts.append(f"{100 * sum(busy) / len(busy):.0f} % busy on average")
    if hot:
        parts.append(f"{min(hot):.0f} to {max(hot):.0f} °C")
    if note is not None and len(found) < len(devices):
        parts.append(note)
    return SEPARATOR.join(parts)


def device_table(devices: tuple[DeviceNow, ...], note: str | None, *, over: bool = False) -> RenderableType:
    """Return all of them with all that is known, two lines each; of a run that is `over` their names."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for device in devices:
        busy = "bold magenta" if device.samples else ""
        doing = (measuring(device), busy) if not over else ("", "")
        table.add_row(str(device.index), Text.assemble(one_line(device.name, 60), "  ", doing))
        if device.reading is not None:
            table.add_row("", Text(", ".join(_figures(device.reading)) or "the driver reports no figures", style="dim"))
    notes = [] if note is None else [Text(note, style="dim")]
    none = Text("The journal names no device (a run of an older version).", style="dim")
    return Group(table, *notes) if devices else Group(none, *notes)
