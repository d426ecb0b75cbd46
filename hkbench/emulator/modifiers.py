"""What stands behind the operands of an instruction: op_sel, DPP, SDWA, clamp."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hkbench.emulator.operands import SELECTIONS, NotUnderstood

_LIST = re.compile(r"(op_sel|op_sel_hi|neg_lo|neg_hi|quad_perm):\[(\d(?:,\d){0,3})\]")
_FIELD = re.compile(r"([a-z_0-9]+):(\w+)")
_WORD_START = re.compile(
    r" (?=(?:[a-z_0-9]+:[\w\[\-]|clamp\b|offen\b|idxen\b|lds\b|gds\b|sc0\b|sc1\b|nt\b|glc\b|slc\b|row_mirror\b"
    r"|row_half_mirror\b|high\b|tfe\b|mul:|div:))"
)
_SHIFTS = {"row_shl": 0x100, "row_shr": 0x110, "row_ror": 0x120}
_WAVES = {"wave_shl": 0x130, "wave_rol": 0x134, "wave_shr": 0x138, "wave_ror": 0x13C}
_UNUSED = {"UNUSED_PAD": 0, "UNUSED_SEXT": 1, "UNUSED_PRESERVE": 2}


def split(text: str, *, expects_words: bool = False) -> tuple[list[str], list[str]]:
    """Return the operands and the modifiers in the text behind a mnemonic."""
    if not text:
        return [], []
    if expects_words:
        return [part.strip() for part in re.split(r", (?![^(]*\))", text)], []
    head, *words = _WORD_START.split(text)
    if _WORD_START.match(" " + head) and ":[" not in head.partition(",")[0]:
        return [], [head, *words]
    return [part.strip() for part in re.split(r",\s*(?![^\[]*\])", head)] if head else [], words


@dataclass
class Modifiers:
    """The modifiers of a vector or scalar ALU instruction."""

    op_sel: tuple[int, ...] | None = None
    op_sel_hi: tuple[int, ...] | None = None
    neg_lo: tuple[int, ...] | None = None
    neg_hi: tuple[int, ...] | None = None
    clamp: bool = False
    omod: int = 0
    dpp: bool = False
    dpp_ctrl: int = 0
    row_mask: int = 15
    bank_mask: int = 15
    bound_ctrl: bool = False
    sdwa: bool = False
    dst_sel: int = 0
    dst_unused: int = 0
    selections: dict[int, int] = field(default_factory=dict)  #: source -> what SDWA selects of it
    bitop3: int | None = None

    @classmethod
    def read(cls, words: list[str]) -> Modifiers:
        """Return the modifiers that the words say. Raises NotUnderstood."""
        found = cls()
        for word in words:
            found._take(word.strip())
        return found

    def list_of(self, name: str, default: int) -> tuple[int, ...]:
        """Return a list, filled up with its default."""
        given: tuple[int, ...] = getattr(self, name) or ()
        return given + (default,) * (4 - len(given))

    def check_suffix(self, suffix: str) -> None:
        """Raise NotUnderstood where the encoding and the modifiers do not fit."""
        if self.dpp != ("dpp" in suffix) or self.sdwa != (suffix == "_sdwa"):
            if suffix == "_e64" and not self.dpp and not self.sdwa:
                return
            raise NotUnderstood(f"the modifiers of {suffix or 'this encoding'}")

    def _take(self, word: str) -> None:
        if word == "clamp":
            self.clamp = True
            return
        if word in ("row_mirror", "row_half_mirror"):
            self.dpp, self.dpp_ctrl = True, 0x140 if word == "row_mirror" else 0x141
            return
        listed = _LIST.fullmatch(word)
        if listed is not None:
            self._take_list(listed[1], tuple(int(n) for n in listed[2].split(",")))
            return
        match = _FIELD.fullmatch(word)
        if match is None or not self._take_field(match[1], match[2]):
            raise NotUnderstood(f"modifier {word}")

    def _take_list(self, name: str, values: tuple[int, ...]) -> None:
        if name == "quad_perm":
            if len(values) != 4 or max(values) > 3:
                raise NotUnderstood(f"quad_perm {values}")
            self.dpp, self.dpp_ctrl = True, sum(value << 2 * n for n, value in enumerate(values))
        elif max(values) > 1:
            raise NotUnderstood(f"{name} {values}")
        else:
            setattr(self, name, values)

    def _take_field(self, name: str, value: str) -> bool:
        if name in ("src0_sel", "src1_sel") and value in SELECTIONS:
            self.sdwa, self.selections[int(name[3])] = True, SELECTIONS[value]
        elif name == "dst_sel" and value in SELECTIONS:
            self.sdwa, self.dst_sel = True, SELECTIONS[value]
        elif name == "dst_unused" and value in _UNUSED:
            self.sdwa, self.dst_unused = True, _UNUSED[value]
        elif not re.fullmatch(r"\d{1,4}|0x[0-9a-f]{1,4}", value):
            return False
        else:
            return self._take_number(name, int(value, 0))
        return True

    def _take_number(self, name: str, value: int) -> bool:
        if name in _SHIFTS and 1 <= value <= 15:
            self.dpp, self.dpp_ctrl = True, _SHIFTS[name] + value
        elif name in _WAVES and value == 1:
            self.dpp, self.dpp_ctrl = True, _WAVES[name]
        elif name == "row_bcast" and value in (15, 31):
            self.dpp, self.dpp_ctrl = True, 0x142 if value == 15 else 0x143
        elif name == "row_newbcast" and value <= 15:
            self.dpp, self.dpp_ctrl = True, 0x150 + value
        elif name in ("row_mask", "bank_mask") and value <= 15:
            setattr(self, name, value)
        elif name == "bound_ctrl" and value in (0, 1):  # both are printed for the bit that is set
            self.bound_ctrl = True
        elif name == "mul" and value in (2, 4):
            self.omod = value // 2
        elif name == "div" and value == 2:
            self.omod = 3
        elif name == "bitop3" and value <= 255:
            self.bitop3 = value
        else:
            return False
        return True
