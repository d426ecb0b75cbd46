"""AMD's pseudocode as tinygrad's wheel carries it, by mnemonic, read into trees."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace

from tinygrad.runtime.autogen.amd.cdna.str_pcode import PCODE
from tinygrad.runtime.autogen.amd.rdna3.str_pcode import PCODE as RDNA3
from unit.emulator.proof import functions, grammar, values
from unit.emulator.proof.evaluator import Builtin, Cell, Evaluation
from unit.emulator.proof.values import Value

_ENDINGS = ("_e32", "_e64")
#: The CDNA manual lacks these; the RDNA 3 manual has instructions of the same name and meaning.
_FROM_RDNA3 = ("V_FMA_MIX_F32", "V_FMA_MIXLO_F16", "V_FMA_MIXHI_F16", "V_FMAC_F16_E32", "V_XOR3_B32", "V_FMAC_F16_E64")
#: The manual has them by these names only.
_SAME = {"v_exp_legacy_f32": "v_exp_f32", "v_log_legacy_f32": "v_log_f32"}
_PARTS = ("v_min_", "v_max_", "v_min3_", "v_max3_", "v_sad_u8", "v_msad_u8", "v_prng_b32")


@dataclass(frozen=True)
class Entry:
    """The pseudocode of one mnemonic in one encoding."""

    mnemonic: str
    encoding: str  #: as tinygrad names it, without `Op`: VOP2, SOPC, DS, ...
    block: grammar.Block
    types: Mapping[str, tuple[str, int]]  #: of each operand that is read or written: its kind, and its bits
    elements: Mapping[str, tuple[str, int]]  #: of each operand: the type of which it holds one or several

    def uses(self, name: str) -> bool:
        return name in self.types


@functools.cache
def entries() -> Mapping[str, Mapping[str, Entry]]:
    """Return mnemonic (without `_e32`, `_e64`) -> encoding -> entry, of those that are pseudocode and not prose."""
    found: dict[str, dict[str, Entry]] = {}
    supplement = {key: text for key, text in RDNA3.items() if key.name in _FROM_RDNA3}
    for key, text in [*PCODE.items(), *supplement.items()]:
        name, encoding = key.name.lower(), type(key).__name__.removesuffix("Op")
        for ending in _ENDINGS:
            name = name.removesuffix(ending)
        try:
            block = grammar.parse(text)
        except grammar.NotPseudocode:
            continue
        if not _prose(block):
            found.setdefault(name, {})[encoding] = Entry(name, encoding, block, _types(block), _elements(block))
    for name, other in _SAME.items():
        found[name] = {encoding: replace(entry, mnemonic=name) for encoding, entry in found[other].items()}
    return found


def _prose(block: grammar.Block) -> bool:
    """Say whether it is a sentence that happens to parse: `D = A (16x4) * B (4x16)`."""
    return any(isinstance(node, grammar.Call) and node.function in ("A", "B", "C") for node in _nodes(block))


def _nodes(node: object) -> Iterator[object]:
    yield node
    if isinstance(node, tuple):
        for part in node:
            yield from _nodes(part)
    elif is_dataclass(node) and not isinstance(node, type):
        for each in fields(node):
            yield from _nodes(getattr(node, each.name))


def _types(block: grammar.Block) -> dict[str, tuple[str, int]]:
    """Find how many bits of each operand are used, and as what they are seen first."""
    found: dict[str, tuple[str, int]] = {}

    def note(name: str, kind: str, width: int) -> None:
        had = found.get(name, (kind, 0))
        found[name] = (had[0] if had[0] != "b" else kind, max(had[1], width))

    for node in _nodes(block):
        match node:
            case grammar.Declare("S"):  # S[0], S[1], S[2]
                for name in ("S0", "S1", "S2"):
                    note(name, "f", 32)
            case grammar.View(grammar.Name(name), label) if values.typed(label):
                kind_width = values.typed(label)
                assert kind_width
                note(name, *kind_width)
            case grammar.View(grammar.Slice(grammar.Name(name)), label) if values.typed(label):
                kind_width = values.typed(label)
                assert kind_width
                note(name, kind_width[0], 0)
            case grammar.Slice(grammar.Name(name), grammar.Number(high), grammar.Number(low)):
                note(name, "b", max(int(high, 0), int(low, 0)) + 1)
            case grammar.Index(grammar.Name(name)) | grammar.Name(name):
                note(name, "b", 0)
    return found


def _elements(block: grammar.Block) -> dict[str, tuple[str, int]]:
    found: dict[str, tuple[str, int]] = {}
    for node in _nodes(block):
        match node:
            case grammar.View(grammar.Name(name) | grammar.Slice(grammar.Name(name)), label):
                kind_width = values.typed(label)
                if kind_width and kind_width[1] >= 16 and found.get(name, ("b", 0))[0] in ("b", "u"):
                    found[name] = kind_width
    return found


@functools.cache
def known_functions(arch: str) -> dict[str, Builtin]:
    """Return what pseudocode may call: the builtins, and other mnemonics (`v_max_f32`)."""
    known = functions.builtins(arch)
    for mnemonic, forms in entries().items():
        if mnemonic.startswith(_PARTS):
            known[mnemonic] = _as_function(next(iter(forms.values())))
    for name, operator in (("minimum", "<"), ("maximum", ">")):
        for width in (16, 32):
            known[f"v_{name}_f{width}"] = _ordered(operator, 2)
            known[f"v_{name}3_f{width}"] = _ordered(operator, 3)
    return known


def _as_function(entry: Entry) -> Builtin:
    def call(caller: Evaluation, arguments: tuple[Value, ...]) -> Value:
        cells = dict(caller.cells)
        for i, value in enumerate(arguments):
            cells[f"S{i}"] = Cell(value.bits, value.width, value.kind)
        result = Cell(0, entry.types["D0"][1])
        cells["D0"] = result
        Evaluation(cells, caller.functions).run(entry.block)
        return Value(entry.types["D0"][0], result.width, result.bits)

    return call


def _ordered(operator: str, count: int) -> Builtin:
    """Minimum and maximum of IEEE 754-2019: NaN is kept, -0 is less than +0."""

    def pick(_: Evaluation, arguments: tuple[Value, ...]) -> Value:
        chosen = arguments[0]
        for value in arguments[1:count]:
            if chosen.number.nan:
                break
            equal_zeros = chosen.number.zero and value.number.zero
            smaller = value.number.negative and not chosen.number.negative
            larger = not value.number.negative and chosen.number.negative
            better = (smaller if operator == "<" else larger) if equal_zeros else False
            if value.number.nan or better or values.binary(operator, value, chosen).true:
                chosen = value
        return chosen

    return pick
