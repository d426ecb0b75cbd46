"""ALU instructions in the assembler's words, and what the pseudocode makes of a wave's registers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from unit.emulator.proof import errata, inputs, pseudocode
from unit.emulator.proof.evaluator import Bits, Cell, Cells, Evaluation
from unit.emulator.proof.pseudocode import Entry
from unit.emulator.proof.values import Value, mask
from unit.emulator.proof.wave import LANES, VCC, Registers, Wave

#: These keep the upper half of their destination. The others of 16 bits clear it: of them alone LLVM takes the result
#: for a number of 32 bits (zeroesHigh16BitsOfDest).
KEEP_UPPER_HALF = (
    *("v_mad_f16", "v_mad_u16", "v_mad_i16", "v_fma_f16", "v_div_fixup_f16"),
    *("v_fma_mixlo", "v_fma_mixhi", "v_cvt_pk_fp8", "v_cvt_pk_bf8", "v_cvt_sr"),
)

_JOINED = re.compile(r"v_(pk|\w+_legacy)\w*_f(16|32)")
_NO_E64 = ("v_fmamk_", "v_fmaak_", "v_readfirstlane", "v_swap_", "v_pk_fmac", "v_dot", "v_permlane")
_SOURCES = ("S0", "S1", "S2")
_LITERAL = 0x40490FDB
_CARRY_IN, _CARRY_OUT, _SCALAR = 40, 44, 48  # scalar registers


@dataclass(frozen=True)
class Operand:
    """Registers: `v` or `s`, the first of them, and how many bits they hold together."""

    file: str
    register: int
    width: int

    def __str__(self) -> str:
        if (self.file, self.register) == ("s", VCC):
            return "vcc"
        count = (self.width + 31) // 32
        if count <= 1:
            return f"{self.file}{self.register}"
        return f"{self.file}[{self.register}:{self.register + count - 1}]"


@dataclass(frozen=True)
class Instruction:
    """One instruction: its text, and which registers the pseudocode's names stand for."""

    text: str
    entry: Entry
    operands: Mapping[str, Operand]
    carry_in: int = VCC  #: the scalar register that is VCC when it is read
    carry_out: int | None = None  #: the one that the pseudocode's VCC, or D0 of a comparison, is written to
    fields: Mapping[str, int] = field(default_factory=dict)  #: OPSEL, SIMM16, ...


def operand_bits(entry: Entry, name: str) -> int:
    """Return the width of the registers of an operand: whole ones."""
    if name == "D0" and entry.mnemonic.startswith("s_bcnt"):
        return 32
    if entry.mnemonic.startswith("v_cmp") and name not in entry.types:
        return 64 if entry.mnemonic.endswith("64") else 32
    return max(32, (entry.types.get(name, ("b", 32))[1] + 31) // 32 * 32)


def scalar(entry: Entry, register: int) -> Instruction:
    """Return the SALU instruction with its operands from this register on."""
    operands: dict[str, Operand] = {}
    at = register
    for name in ("D0", *_SOURCES):
        if entry.uses(name) and not (entry.encoding == "SOPK" and name in ("S0", "S1") and _immediate(entry) == name):
            operands[name] = Operand("s", at, operand_bits(entry, name))
            at += 2
    words = [str(operand) for operand in operands.values()]
    fields = {}
    if entry.encoding == "SOPK":
        fields[_immediate(entry)] = number = inputs.draw("u", 16, inputs.generator(entry.mnemonic, register))
        words.append(str(number))
    return Instruction(f"{entry.mnemonic} {', '.join(words)}", entry, operands, fields=fields)


def _immediate(entry: Entry) -> str:
    """Return which source of a SOPK instruction is the number in the instruction."""
    return "S1" if entry.uses("S1") else "S0"


def vector(entry: Entry, register: int, wide: bool) -> Instruction:
    """Return the VALU instruction with its operands from this register on; `wide` asks for the form of 64 bits."""
    operands: dict[str, Operand] = {}
    at = register
    compares = entry.mnemonic.startswith("v_cmp")
    for name in ("D0", *_SOURCES):
        if _has(entry, name):
            operands[name] = Operand("v", at, operand_bits(entry, name))
            at += operands[name].width // 32 + operands[name].width // 32 % 2
    fields, modifiers = _fields(entry, register)
    words = [str(operand) for operand in operands.values()]
    explicit = wide and not entry.mnemonic.startswith(_NO_E64)
    carry_in, carry_out = VCC, None
    if compares or entry.uses("D1") or _writes_carry(entry):
        carry_out = _CARRY_OUT if explicit else VCC
        words.insert(0 if compares else 1, str(Operand("s", carry_out, 64)))
    if entry.mnemonic.startswith(("v_cndmask", "v_addc", "v_subb")):
        carry_in = _CARRY_IN if explicit else VCC
        words.append(str(Operand("s", carry_in, 64)))
    if entry.mnemonic.startswith("v_fmamk"):
        words.insert(2, hex(_LITERAL))
    if entry.mnemonic.startswith("v_fmaak"):
        words.append(hex(_LITERAL))
    name = entry.mnemonic + (("_e64" if explicit else "_e32") if entry.encoding in ("VOP1", "VOP2", "VOPC") else "")
    return Instruction(f"{name} {', '.join(words)}{modifiers}", entry, operands, carry_in, carry_out, fields)


def _has(entry: Entry, name: str) -> bool:
    """Say whether a vector instruction names this operand. Comparisons name their sources even where none is used."""
    if entry.mnemonic.startswith("v_cmp"):
        return name in ("S0", "S1")
    return entry.uses(name) or (name == "D0" and (entry.uses("VDST") or entry.uses("D")))


def _fields(entry: Entry, register: int) -> tuple[dict[str, int], str]:
    """Return what the pseudocode reads from the instruction, and how the assembler writes it."""
    rng = inputs.generator("fields", entry.mnemonic, register)
    if entry.mnemonic.startswith("v_bitop3"):
        table = rng.getrandbits(8)
        fields = {"INST.OMOD": table >> 6, "INST.ABS": table >> 3 & 7, "INST.NEG": table & 7}
        return fields, f" bitop3:{table:#x}"
    if entry.mnemonic.startswith("v_fma_mix"):
        low, high = rng.getrandbits(3), rng.getrandbits(3)
        return {"OPSEL": low, "OPSEL_HI": high}, f" op_sel:{_bit_list(low)} op_sel_hi:{_bit_list(high)}"
    if entry.uses("VDST") and entry.uses("OPSEL"):
        chosen = rng.getrandbits(1)
        return {"OPSEL": chosen << 3}, " op_sel:[0,0,1]" if chosen else ""
    return {"SIMM32": _LITERAL}, ""


def _bit_list(bits: int) -> str:
    return "[" + ",".join(str(bits >> i & 1) for i in range(3)) + "]"


def _writes_carry(entry: Entry) -> bool:
    return entry.encoding == "VOP3SD" or "_co_u32" in entry.mnemonic


def fill(wave: Wave, instruction: Instruction, rng_names: tuple[object, ...]) -> None:
    """Put values to try into the registers that the instruction reads."""
    rng = inputs.generator(instruction.entry.mnemonic, *rng_names)
    for name, operand in instruction.operands.items():
        kind, element = instruction.entry.elements.get(name, ("u", 32))
        if operand.file == "s":
            wave.set_scalar(operand.register, inputs.filled(kind, element, operand.width, rng), operand.width)
            continue
        for lane in range(LANES):
            cell = Cell(inputs.filled(kind, element, operand.width, rng), operand.width)
            wave.set_vector(operand.register, lane, cell)


def apply(wave: Wave, instruction: Instruction, arch: str) -> None:
    """Change the wave as the pseudocode of the instruction says."""
    if instruction.entry.mnemonic.startswith("s_"):
        _apply_scalar(wave, instruction, arch)
    else:
        _apply_vector(wave, instruction, arch)


def _shared(wave: Wave, instruction: Instruction) -> dict[str, Bits | Cells]:
    cells: dict[str, Bits | Cells] = {
        "SCC": Cell(wave.scc, 1),
        "EXEC": Cell(wave.exec, 64),
        "VCC": Cell(wave.scalar(instruction.carry_in, 64), 64),
        "M0": Cell(wave.m0),
        "VGPR": Registers(wave),
        "WAVE_MODE.IEEE": Cell(wave.mode >> 9 & 1, 1),
        "ROUND_MODE": Cell(wave.mode & 3, 2),
        "ROUND_NEAREST_EVEN": Cell(0, 2),
        "ROUND_TOWARD_ZERO": Cell(3, 2),
        "OPSEL": Cell(0, 4),
        "OPSEL_HI": Cell(7, 3),
        "SDWA_SRC0_SEL": Cell(0, 3),
        "WORD1": Cell(5, 3),
        **{f"BYTE{i}": Cell(i, 3) for i in range(4)},
    }
    for name, operand in instruction.operands.items():
        cells[{"D0": "VDST", "S0": "SRC0"}.get(name, f"{name} register")] = Cell(operand.register)
    for name, value in instruction.fields.items():
        cells[name] = Cell(value, 32)
    return cells


def _apply_scalar(wave: Wave, instruction: Instruction, arch: str) -> None:
    cells = _shared(wave, instruction)
    for name, operand in instruction.operands.items():
        cells[name] = Cell(wave.scalar(operand.register, operand.width), operand.width)
    run = Evaluation(cells, pseudocode.known_functions(arch))
    _run(run, instruction, bool(wave.scc), arch)
    wave.exec, scc = _bits(run, "EXEC"), _bits(run, "SCC")
    wave.scc = int(scc != 0)
    if "D0" in instruction.operands:
        target = instruction.operands["D0"]
        wave.set_scalar(target.register, _bits(run, "D0"), target.width)


def _run(run: Evaluation, instruction: Instruction, carry: bool, arch: str) -> None:
    """Run the pseudocode, or what stands in its place where it is known to be wrong."""
    entry = instruction.entry
    witness = errata.WITNESSES.get(entry.mnemonic)
    if witness is None:
        run.run(entry.block)
        return
    sources = tuple(_bits(run, name) for name in _SOURCES if name in instruction.operands)
    kind, width = entry.elements.get("D0", entry.types["D0"])
    bits = witness(errata.Case(sources, carry, _bits(run, "D0"), arch))
    target = run.cells["D0"]
    assert isinstance(target, Cell)
    whole = max(width, operand_bits(entry, "D0")) if entry.encoding == "VOP3P" else width
    for low in range(0, whole, width):
        target.write(low, Value(kind, width, bits >> low & mask(width)))
    if entry.mnemonic.startswith("s_"):
        run.cells["SCC"] = Cell(int(bits != 0), 1)


def _apply_vector(wave: Wave, instruction: Instruction, arch: str) -> None:
    functions = pseudocode.known_functions(arch)
    out = 0
    shared = _shared(wave, instruction)
    for lane in wave.lanes():
        cells = dict(shared)
        cells["VCC"] = Cell(wave.scalar(instruction.carry_in, 64), 64)
        cells["laneId"] = Cell(lane, 32, "i")
        cells["D0"], cells["D1"] = Cell(0, 64), Cell(0, 64)
        for name, operand in instruction.operands.items():
            cells[name] = Cell(wave.vector(operand.register, lane, operand.width), operand.width)
        cells["D"] = cells["D0"]
        run = Evaluation(cells, functions)
        _run(run, instruction, bool(wave.scalar(instruction.carry_in, 64) >> lane & 1), arch)
        out |= _carry(run, instruction, lane) << lane
        for name in ("D0", "S0"):
            if name in instruction.operands:
                _write_lane(wave, instruction, name, lane, run)
    if instruction.entry.mnemonic.startswith("v_cmpx"):
        wave.exec = out
    if instruction.carry_out is not None:
        wave.set_scalar(instruction.carry_out, out, 64)


def _carry(run: Evaluation, instruction: Instruction, lane: int) -> int:
    if instruction.entry.mnemonic.startswith("v_cmp"):
        return _bits(run, "D0") >> lane & 1
    if instruction.entry.uses("D1"):
        return _bits(run, "D1") & 1
    return _bits(run, "VCC") >> lane & 1


def _write_lane(wave: Wave, instruction: Instruction, name: str, lane: int, run: Evaluation) -> None:
    cell, operand = run.cells[name], instruction.operands[name]
    assert isinstance(cell, Cell)
    if not cell.written:
        return
    upper = max(low + width for low, width in cell.written)
    if upper <= 16 and not instruction.entry.mnemonic.startswith(KEEP_UPPER_HALF):
        cell.bits &= mask(16)
    cell.width = operand.width
    joined = _JOINED.fullmatch(instruction.entry.mnemonic)
    if joined:  # the text has joined floating-point numbers to bits
        size = int(joined[2])
        cell.written = {(low, size): "f" for low in range(0, operand.width if joined[1] == "pk" else size, size)}
    wave.set_vector(operand.register, lane, cell)


def _bits(run: Evaluation, name: str) -> int:
    cell = run.cells[name]
    assert isinstance(cell, Cell)
    return cell.bits


#: Proved elsewhere: they move values between lanes, or change where the program goes on.
_ELSEWHERE = (
    *("v_permlane", "v_readfirstlane", "v_readlane", "v_writelane", "v_pk_mov", "v_cvt_scalef32"),
    *("s_getpc", "s_setpc", "s_swappc", "s_call", "s_cbranch", "s_getreg", "s_setreg", "s_rfe"),
    *("s_movre", "s_set_gpr", "s_setvskip", "v_div_scale"),
)


def covers(mnemonic: str) -> bool:
    """Say whether the pseudocode (or what stands in its place) defines the mnemonic here."""
    known = pseudocode.entries().get(mnemonic, {})
    return not mnemonic.startswith(_ELSEWHERE) and any(True for _ in forms(known))


def forms(entry_by_encoding: Mapping[str, Entry]) -> Iterator[tuple[Entry, bool]]:
    """Yield the encodings of a mnemonic to try: each of its own, and the wide form of a short one."""
    for encoding, entry in entry_by_encoding.items():
        if encoding in ("VOP1", "VOP2", "VOPC"):
            yield entry, False
            if not entry.mnemonic.startswith(_NO_E64):
                yield entry, True
        elif encoding in ("VOP3", "VOP3SD"):
            if not {"VOP1", "VOP2", "VOPC"} & set(entry_by_encoding):
                yield entry, True
        elif encoding in ("VOP3P", "SOP1", "SOP2", "SOPC", "SOPK"):
            yield entry, False
