"""Memory instructions in the assembler's words, and what the pseudocode makes of registers, LDS and memory.

The pseudocode leaves open how an address is computed. Here it is as the manual's chapters on the formats have it:

| form | address of a lane |
| --- | --- |
| DS | the register, plus `offset` (16 bits), or twice with offset0 and offset1 in units of what is read |
| global | 64 bits of registers plus `offset`; or a pair of scalar registers plus 32 bits of a register plus `offset` |
| flat | 64 bits of registers plus `offset` |
| buffer | base of a raw descriptor plus scalar offset plus register (`offen`) plus `offset`; beyond it 0 is read |
| scalar | a pair of scalar registers plus `offset`, of a whole word |
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

from unit.emulator.proof import errata, inputs, pseudocode
from unit.emulator.proof.alu import Operand
from unit.emulator.proof.evaluator import Bits, Builtin, Cell, Cells, Evaluation
from unit.emulator.proof.pseudocode import Entry
from unit.emulator.proof.values import FORMATS, Value, mask
from unit.emulator.proof.wave import LANES, Memory, Registers, Wave

_ADDRESS, _DATA, _DATA2, _RESULT = 8, 12, 20, 28  # vector registers
_BASE, _DESCRIPTOR, _OFFSET, _SCALARS = 16, 20, 24, 32  # scalar registers
_STEP = 64  #: bytes between the places of neighbouring lanes: as much as an instruction touches
_CALCULATED = (
    *("CalcDsAddr", "CalcGlobalAddr", "CalcFlatAddr", "CalcBufferAddr", "CalcScratchAddr"),
    *("CalcScalarGlobalAddr", "CalcScalarBufferAddr"),
)


@dataclass(frozen=True)
class Access:
    """A memory instruction: its text, its registers by the pseudocode's names, and the address of each lane."""

    text: str
    entry: Entry
    operands: dict[str, Operand]
    addresses: tuple[int, ...]  #: of each lane, without the offsets below
    offsets: tuple[int, ...] = (0,)  #: one of 16 bits, or two
    outside: frozenset[int] = field(default_factory=frozenset)  #: lanes beyond the range of a buffer


def _operand_words(entry: Entry, names: tuple[str, ...], returns: bool) -> dict[str, Operand]:
    places = {"ADDR": _ADDRESS, "DATA": _DATA, "VDATA": _DATA, "DATA2": _DATA2, "RETURN_DATA": _RESULT}
    found: dict[str, Operand] = {}
    for name in names:
        if entry.uses(name) and (name != "RETURN_DATA" or returns):
            bits = max(entry.types[name][1], 64 if entry.mnemonic.endswith("64") and name != "ADDR" else 32)
            found[name] = Operand("v", places[name], _whole(bits))
    return found


def _whole(bits: int) -> int:
    return (bits + 31) // 32 * 32


def local(entry: Entry, wave: Wave, rng: random.Random) -> Access:
    """Return the DS instruction, with addresses of its own for every lane put into the wave."""
    name = entry.mnemonic
    double = any(part in name for part in ("read2", "write2", "wrxchg2"))
    offsets: tuple[int, ...] = (rng.randint(0, 3), rng.randint(4, 7)) if double else (rng.choice((0, 16, 48, 0x1230)),)
    returns = "_rtn" in name or "read" in name
    operands = _operand_words(entry, ("RETURN_DATA", "DATA", "DATA2"), returns)
    places = list(range(LANES))
    rng.shuffle(places)
    addresses = tuple(place * (8 if "st64" in name else _STEP) for place in places)
    for lane, address in enumerate(addresses):
        wave.vgpr[_ADDRESS, lane] = address
    words = [operands["RETURN_DATA"]] if returns else []
    words.append(Operand("v", _ADDRESS, 32))
    words += [operands[name] for name in ("DATA", "DATA2") if name in operands]
    suffix = f" offset0:{offsets[0]} offset1:{offsets[1]}" if double else f" offset:{offsets[0]}"
    return Access(f"{name} {', '.join(map(str, words))}{suffix}", entry, operands, addresses, offsets)


def everywhere(entry: Entry, wave: Wave, rng: random.Random, form: str) -> Access:
    """Return the instruction on memory in one of the forms `global`, `saddr`, `flat`, `buffer`."""
    atomic = "atomic" in entry.mnemonic
    store = "store" in entry.mnemonic
    returns = atomic and rng.random() < 0.75
    operands = _operand_words(entry, ("RETURN_DATA", "DATA", "VDATA"), returns)
    if returns and form == "buffer":  # what is returned takes the place of the data
        operands["RETURN_DATA"] = Operand("v", _DATA, operands["RETURN_DATA"].width)
    if not store and not atomic:
        operands["VDATA"] = Operand("v", _RESULT, operands["VDATA"].width)
    offset = rng.choice((0, 16, 32, 1024) if form in ("flat", "buffer") else (0, 16, -64, 1024, -1024))
    places = list(range(LANES))
    rng.shuffle(places)
    addresses = tuple(wave.address + 2048 + place * _STEP for place in places)
    last = "VDATA" if "VDATA" in operands else "DATA"
    text, outside = _text(entry, wave, form, addresses, operands, last, returns, offset)
    suffix = (f" offset:{offset}" if offset else "") + (" sc0" if returns else "")
    return Access(text + suffix, entry, operands, tuple(a + offset for a in addresses), (0,), outside)


def _text(
    entry: Entry,
    wave: Wave,
    form: str,
    addresses: tuple[int, ...],
    operands: dict[str, Operand],
    last: str,
    returns: bool,
    offset: int,
) -> tuple[str, frozenset[int]]:
    data, result = str(operands[last]), str(operands.get("RETURN_DATA", operands[last]))
    load = "load" in entry.mnemonic
    if form == "buffer":
        outside = _descriptor(wave, addresses, offset, operands[last].width // 8)
        return f"{entry.mnemonic} {data}, v{_ADDRESS}, s[{_DESCRIPTOR}:{_DESCRIPTOR + 3}], s{_OFFSET} offen", outside
    base = addresses[0] - 512 if form == "saddr" else 0
    for lane, address in enumerate(addresses):
        wave.vgpr[_ADDRESS, lane] = (address - base) & mask(32)
        wave.vgpr[_ADDRESS + 1, lane] = (address - base) >> 32 & mask(32)
    if form == "saddr":
        base = min(addresses) - 512
        wave.set_scalar(_BASE, base, 64)
        for lane, address in enumerate(addresses):
            wave.vgpr[_ADDRESS, lane] = address - base
    register = f"v{_ADDRESS}" if form == "saddr" else f"v[{_ADDRESS}:{_ADDRESS + 1}]"
    tail = {"saddr": f", s[{_BASE}:{_BASE + 1}]", "global": ", off", "flat": ""}[form]
    if load:
        return f"{entry.mnemonic} {data}, {register}{tail}", frozenset()
    head = f"{result}, " if returns else ""
    return f"{entry.mnemonic} {head}{register}, {data}{tail}", frozenset()


def _descriptor(wave: Wave, addresses: tuple[int, ...], offset: int, size: int) -> frozenset[int]:
    """Write a raw buffer's descriptor that ends before the last quarter of the lanes' places.

    Its stride and both kinds of swizzle are set: they mean nothing for an access without an index.
    """
    scalar, stride = 256, 0xC200 << 16
    base = min(addresses) - 512
    records = max(addresses) - base + offset - scalar - 15 * _STEP
    wave.set_scalar(_DESCRIPTOR, base, 64)
    wave.set_scalar(_DESCRIPTOR + 1, base >> 32 | stride, 32)
    wave.set_scalar(_DESCRIPTOR + 2, records, 32)
    wave.set_scalar(_DESCRIPTOR + 3, 0x00027000, 32)
    wave.set_scalar(_OFFSET, scalar, 32)
    outside = set()
    for lane, address in enumerate(addresses):
        register = address - base - scalar
        wave.vgpr[_ADDRESS, lane] = register
        if register + offset + scalar + size > records:
            outside.add(lane)
    return frozenset(outside)


def scalar(entry: Entry, wave: Wave, rng: random.Random) -> Access:
    """Return the scalar load from a pair of registers (or a descriptor) and an offset."""
    width = entry.types["SDATA"][1]
    operand = Operand("s", _SCALARS, width)
    offset = rng.choice((0, 4, 64, 1020))
    address = wave.address + 2048
    buffered = "buffer" in entry.mnemonic
    wave.set_scalar(_DESCRIPTOR, address, 64)
    wave.set_scalar(_DESCRIPTOR + 2, 4096, 32)
    wave.set_scalar(_DESCRIPTOR + 3, 0x00027000, 32)
    base = f"s[{_DESCRIPTOR}:{_DESCRIPTOR + (3 if buffered else 1)}]"
    return Access(f"{entry.mnemonic} {operand}, {base}, {offset:#x}", entry, {"SDATA": operand}, (address + offset,))


def fill(wave: Wave, access: Access, rng: random.Random) -> None:
    """Put values to try into the registers that are read, and where they are read from."""
    for name, operand in access.operands.items():
        if name in ("DATA", "DATA2", "VDATA", "RETURN_DATA"):
            kind, element = access.entry.elements.get(name, ("u", 32))
            for lane in range(LANES):
                cell = Cell(inputs.filled(kind, element, operand.width, rng), operand.width)
                wave.set_vector(operand.register, lane, cell)
    kind, element = access.entry.elements.get("DATA", ("u", 32))
    for block in (wave.lds, wave.memory):
        for at in range(0, len(block) // 8 * 8, 8):
            block[at : at + 8] = inputs.filled(kind, element, 64, rng).to_bytes(8, "little")


def apply(wave: Wave, access: Access, arch: str) -> dict[int, tuple[str, int]]:
    """Change the wave as the pseudocode says; return which bytes were written as floating point."""
    local_memory = access.entry.encoding == "DS"
    memory = Memory(wave.lds, 0) if local_memory else Memory(wave.memory, wave.address)
    lanes = wave.lanes() if access.entry.encoding != "SMEM" else iter((0,))
    for lane in lanes:
        if lane in access.outside:
            _nothing(wave, access, lane)
            continue
        run = Evaluation(_cells(wave, access, lane, memory), _functions(access.addresses[lane], arch))
        place = memory.element(access.addresses[lane] + (access.offsets[0] if local_memory else 0))
        extreme = errata.atomic_extreme(access.entry.mnemonic)
        old = place.read(0, extreme[0].width) if extreme else 0
        run.run(access.entry.block)
        if extreme:
            data = wave.vector(access.operands["DATA"].register, lane, extreme[0].width)
            place.write(0, Value("f", extreme[0].width, extreme[1](old, data)))
        if "pk_add" in access.entry.mnemonic:
            kind = ("bf" if "bf16" in access.entry.mnemonic else "f", 16)
            memory.floats.update({place.at: kind, place.at + 2: kind})
        _write_back(wave, access, lane, run)
    return memory.floats


def _cells(wave: Wave, access: Access, lane: int, memory: Memory) -> dict[str, Bits | Cells]:
    address, offsets = access.addresses[lane], access.offsets
    calculated = access.entry.uses("addr") or access.entry.uses("OFFSET") or access.entry.uses("ADDR_BASE")
    cells: dict[str, Bits | Cells] = {
        "ADDR": Cell(address if calculated else address + offsets[0], 64),
        "ADDR_BASE": Cell(address, 64),
        "OFFSET": Cell(offsets[0], 16),
        "OFFSET0": Cell(offsets[0] & 0xFF, 8),
        "OFFSET1": Cell(offsets[1] if len(offsets) > 1 else offsets[0] >> 8, 8),
        "MEM": memory,
        "LDS": memory,
        "EXEC": Cell(wave.exec, 64),
        "VGPR": Registers(wave),
        **{name: Cell(0, 32) for name in ("SADDR", "VADDR", "SRSRC", "SOFFSET", "SBASE")},
        "RETURN_DATA": Cell(0, 128),
        "SDATA": Cell(0, 512),
    }
    for name, operand in access.operands.items():
        if operand.file == "v":
            cells[name] = Cell(wave.vector(operand.register, lane, operand.width), operand.width)
    return cells


def _functions(address: int, arch: str) -> dict[str, Builtin]:
    def local_address(_: Evaluation, arguments: tuple[Value, ...]) -> Value:
        return Value("u", 64, arguments[0].bits + arguments[1].bits + (arguments[2].bits << 8))

    def known(_: Evaluation, arguments: tuple[Value, ...]) -> Value:
        return Value("u", 64, address)

    return {**pseudocode.known_functions(arch), **dict.fromkeys(_CALCULATED, known), "CalcDsAddr": local_address}


def _write_back(wave: Wave, access: Access, lane: int, run: Evaluation) -> None:
    for name, operand in access.operands.items():
        cell = run.cells[name]
        assert isinstance(cell, Cell)
        if name == "SDATA":
            wave.set_scalar(operand.register, cell.bits, operand.width)
        elif cell.written:
            cell.width = operand.width
            wave.set_vector(operand.register, lane, cell)


def _nothing(wave: Wave, access: Access, lane: int) -> None:
    """Read zero, and write nothing: what a buffer does beyond its range."""
    name = "RETURN_DATA" if "RETURN_DATA" in access.operands else "VDATA"
    operand = access.operands.get(name)
    if operand is not None and "store" not in access.entry.mnemonic:
        cell = Cell(0, operand.width)
        if "_d16" in access.entry.mnemonic:
            kept = mask(16) if access.entry.mnemonic.endswith("_hi") else mask(16) << 16
            cell.bits = wave.vector(operand.register, lane, 32) & kept
        wave.set_vector(operand.register, lane, cell)


def forms(entry: Entry) -> tuple[str, ...]:
    """Return the forms in which an entry's instruction is tried."""
    by_encoding = {"DS": ("ds",), "GLOBAL": ("global", "saddr"), "FLAT": ("flat",), "MUBUF": ("buffer",)}
    if entry.encoding == "SMEM":
        return ("scalar",) if "load" in entry.mnemonic and "scratch" not in entry.mnemonic else ()
    if entry.encoding == "SCRATCH":
        return ("scratch",)
    unknown = any(part in entry.mnemonic for part in ("format", "permute", "swizzle", "addtid", "condxchg", "wrap_"))
    return () if unknown else by_encoding.get(entry.encoding, ())


def covers(mnemonic: str) -> bool:
    """Say whether the pseudocode, with the addresses above, defines the mnemonic."""
    return any(forms(entry) for entry in pseudocode.entries().get(mnemonic, {}).values())


def access(entry: Entry, wave: Wave, rng: random.Random, form: str) -> Access:
    """Return the instruction in one of its forms, with its addresses put into the wave's registers."""
    if form == "ds":
        return local(entry, wave, rng)
    return scalar(entry, wave, rng) if form == "scalar" else everywhere(entry, wave, rng, form)


SCRATCH_BYTES = 4096  #: of a lane


def private(entry: Entry, wave: Wave) -> Access:
    """Return the scratch instruction; in the definition's memory the lanes' scratch lies one behind the other."""
    load = "load" in entry.mnemonic
    operand = Operand("v", _RESULT if load else _DATA, _whole(entry.types["VDATA"][1]))
    for lane in range(LANES):
        wave.vgpr[_ADDRESS, lane] = lane % 4 * 16
    words = f"{operand}, v{_ADDRESS}" if load else f"v{_ADDRESS}, {operand}"
    addresses = tuple(lane * SCRATCH_BYTES + lane % 4 * 16 + 32 for lane in range(LANES))
    return Access(f"{entry.mnemonic} {words}, off offset:32", entry, {"VDATA": operand}, addresses)


def forgive_nans(expected: Wave, actual: Wave, done: Access, floats: dict[int, tuple[str, int]]) -> None:
    """Take over a NaN of another kind where floating point was written to memory."""
    memories = (expected.lds, actual.lds) if done.entry.encoding == "DS" else (expected.memory, actual.memory)
    for at, (kind, width) in floats.items():
        form = FORMATS[kind, width]
        codes = [int.from_bytes(memory[at : at + width // 8], "little") for memory in memories]
        if all(form.is_nan(code) for code in codes):
            memories[0][at : at + width // 8] = memories[1][at : at + width // 8]


_DIRECT = re.compile(r"global_load_lds_(ubyte|sbyte|ushort|sshort|dword|dwordx3|dwordx4)")


def direct(mnemonic: str) -> int:
    """Return how many bytes a lane of `global_load_lds_*` reads; 0 for other mnemonics."""
    found = _DIRECT.fullmatch(mnemonic)
    sizes = {"ubyte": 1, "sbyte": 1, "ushort": 2, "sshort": 2, "dword": 4, "dwordx3": 12, "dwordx4": 16}
    return sizes[found[1]] if found else 0


def direct_text(mnemonic: str, wave: Wave, places: list[int]) -> str:
    """Return a load straight to LDS from these places of the memory, with an offset of 32."""
    for lane, place in enumerate(places):
        wave.vgpr[_ADDRESS, lane] = (wave.address + place) & mask(32)
        wave.vgpr[_ADDRESS + 1, lane] = (wave.address + place) >> 32
    return f"{mnemonic} v[{_ADDRESS}:{_ADDRESS + 1}], off offset:32"
