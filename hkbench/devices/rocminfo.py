"""Reads what `rocminfo` prints: the agents of the HSA runtime, CPUs among them, and their memory pools.

The format is that of ROCm's rocminfo.cc: a header of asterisks with `Agent N`, then `Key: value` lines; an agent's own
keys are indented by two, what belongs to its caches, pools and ISAs deeper. Numbers read `64(0x40)`, sizes end in KB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from hkbench.devices.reading import GpuReading
from hkbench.errors import DeviceUnavailable

KIB = 1 << 10

_AGENT = re.compile(r"^Agent (\d+)\s*$")
_PAIR = re.compile(r"^(?P<indent> +)(?P<key>[^:]+?)(?: \(MHz\))?:+ *(?P<value>.*?)\s*$")
_NUMBER = re.compile(r"^(\d+)")
_OWN = 2  #: indentation of an agent's own keys


@dataclass
class _Agent:
    own: dict[str, str] = field(default_factory=dict)
    caches: dict[str, int] = field(default_factory=dict)
    pools: list[tuple[str, int]] = field(default_factory=list)  #: segment with its flags, bytes


def parse(text: str) -> tuple[GpuReading, ...]:
    """The GPUs in the order of HSA, which is HIP's where no `HIP_VISIBLE_DEVICES` hides or reorders some.

    Raises:
        DeviceUnavailable: the text has no agents, or one that breaks off before its memory pools.
    """
    agents = list(_agents(text))
    if not agents:
        raise DeviceUnavailable(f"rocminfo lists no agents; it says: {_first_line(text)}")
    gpus = [agent for agent in agents if agent.own.get("Device Type") == "GPU"]
    for agent in gpus:
        if not agent.pools:
            name = agent.own.get("Marketing Name") or agent.own.get("Name", "a GPU")
            raise DeviceUnavailable(f"rocminfo's output breaks off within {name}; run `rocminfo` to see why")
    return tuple(_reading(index, agent) for index, agent in enumerate(gpus))


def _agents(text: str) -> Iterator[_Agent]:
    agent, segment = None, ""
    for line in text.splitlines():
        if _AGENT.match(line):
            if agent is not None:
                yield agent
            agent, segment = _Agent(), ""
            continue
        pair = _PAIR.match(line)
        if agent is None or pair is None:
            continue
        key, value = pair["key"].strip(), pair["value"]
        if len(pair["indent"]) == _OWN:
            agent.own.setdefault(key, value)
        elif key in ("L1", "L2", "L3"):
            agent.caches[key] = _number(value) * KIB
        elif key == "Segment":
            segment = value
        elif key == "Size" and segment:
            agent.pools.append((segment, _number(value) * KIB))
            segment = ""
    if agent is not None:
        yield agent


def _reading(index: int, agent: _Agent) -> GpuReading:
    own = agent.own
    memory = [size for segment, size in agent.pools if segment.startswith("GLOBAL")]
    lds = [size for segment, size in agent.pools if segment.startswith("GROUP")]
    bdf = _number(own["BDFID"]) if "BDFID" in own else None
    domain = _number(own.get("Domain", "0"))
    return GpuReading(
        index=index,
        name=own.get("Marketing Name") or None,
        arch=own.get("Name", "").partition(":")[0] or None,
        compute_units=_number(own.get("Compute Unit", "")) or None,
        wave_size=_number(own.get("Wavefront Size", "")) or None,
        lds_bytes=max(lds, default=None),
        memory_bytes=max(memory, default=None),  # one pool for each kind of coherence, all the same memory
        clock_mhz=_number(own.get("Max Clock Freq.", "")) or None,
        l2_bytes=agent.caches.get("L2"),
        l3_bytes=agent.caches.get("L3"),
        pci=None if bdf is None else f"{domain:04x}:{bdf >> 8:02x}:{bdf >> 3 & 31:02x}",
    )


def _number(value: str) -> int:
    match = _NUMBER.match(value)
    return int(match[1]) if match else 0


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "nothing")
