"""Runs a tree of pseudocode on cells of bits. Nothing here knows of the executor that it is to prove."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol, TypeGuard

from unit.emulator.proof import formats, grammar as g, values
from unit.emulator.proof.grammar import NotPseudocode
from unit.emulator.proof.values import Value, mask

_CONSTANTS = {
    "INF": Value("f", 64, 0x7FF << 52),
    "NAN": Value("f", 64, 0xFFF << 51),
    "DENORM": Value("denormal", 64, 0),
    "OVERFLOW_F32": Value("f", 32, 0xFF << 23),
    "UNDERFLOW_F32": Value("f", 32, 0),
    "OVERFLOW_F64": Value("f", 64, 0x7FF << 52),
    "UNDERFLOW_F64": Value("f", 64, 0),
    "PI": Value("f", 64, 0x400921FB54442D18),
}


class Bits(Protocol):
    """Anything of which bits can be read and written: a register, a variable, a place in memory."""

    @property
    def width(self) -> int: ...
    @property
    def kind(self) -> str: ...
    def read(self, low: int, width: int) -> int: ...
    def write(self, low: int, value: Value) -> None: ...


@dataclass(slots=True)
class Cell:
    """A variable or a register. `written` says which bits were written, and as what kind."""

    bits: int = 0
    width: int = 32
    kind: str = "b"
    fixed: bool = True  #: a whole assignment keeps the width (a register); a variable takes that of the value
    written: dict[tuple[int, int], str] = field(default_factory=dict)

    def read(self, low: int, width: int) -> int:
        return self.bits >> low & mask(width)

    def write(self, low: int, value: Value) -> None:
        self.bits = self.bits & ~(mask(value.width) << low) | value.bits << low
        self.width = max(self.width, low + value.width)
        self.written[low, value.width] = value.kind


class Cells(Protocol):
    """An array: of registers by lane, of bytes of memory."""

    def element(self, index: int) -> Bits | Cells: ...


@dataclass(frozen=True, slots=True)
class Row:
    """An array that was declared, or one that stands for S0, S1, S2."""

    cells: tuple[Bits, ...]

    def element(self, index: int) -> Bits:
        return self.cells[index]


Builtin = Callable[["Evaluation", tuple[Value, ...]], Value]


@dataclass(frozen=True, slots=True)
class _Place:
    """Bits of a cell, and the type that they are seen as."""

    cell: Bits
    low: int
    width: int
    kind: str
    view: int | None = None  #: the width of a type that was named; bits above those of the place are zero
    reverse: bool = False

    def read(self) -> Value:
        if self.kind == self.cell.kind == "f" and self.low == 0 and self.view and self.view < self.cell.width:
            whole = Value("f", self.cell.width, self.cell.read(0, self.cell.width))
            return values.converted(whole, "f", self.view)  # a variable that was computed in double precision
        bits = self.cell.read(self.low, min(self.width, self.view or self.width))
        if self.reverse:
            bits = int(f"{bits:0{self.width}b}"[::-1], 2)
        return Value(self.kind, self.view or self.width, bits)

    def write(self, value: Value) -> None:
        if self.reverse:
            raise NotPseudocode("bits are written in reverse order")
        self.cell.write(self.low, values.converted(value, self.kind, self.view or self.width))


class _Broken(Exception):
    """A `break`."""


class _Returned(Exception):
    """A `return`, with its value."""

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class Evaluation:
    """One run of a block over cells that it may change, with functions by name."""

    def __init__(self, cells: Mapping[str, Bits | Cells], functions: MutableMapping[str, Builtin]) -> None:
        self.cells: dict[str, Bits | Cells] = dict(cells)
        self.functions: ChainMap[str, Builtin] = ChainMap({}, functions)

    def run(self, block: g.Block) -> None:
        for statement in block:
            self._statement(statement)

    def _statement(self, statement: g.Statement) -> None:
        match statement:
            case g.Assign(targets, operator, value):
                self._assign(targets, operator, self.value(value))
            case g.If(branches):
                for condition, body in branches:
                    if condition is None or self.value(condition).true:
                        return self.run(body)
            case g.For(variable, first, last, body):
                self._loop(variable, self.value(first), self.value(last), body)
            case g.Declare():
                self._declare(statement)
            case g.Function(name, parameters, body):
                self.functions[name] = _closure(parameters, body)
            case g.Return(value):
                raise _Returned(self.value(value))
            case g.Break():
                raise _Broken
            case g.Do(value):
                self.value(value)
        return None

    def _assign(self, targets: tuple[g.Expression, ...], operator: str, value: Value) -> None:
        for target in reversed(targets):
            if isinstance(target, g.Join):
                self._split(target, value)
            elif isinstance(target, g.Name) and not operator:
                self._whole(target.name, value)
            else:
                place = self._place(target, create=True)
                place.write(values.binary(operator, place.read(), value) if operator else value)

    def _split(self, target: g.Join, value: Value) -> None:
        low = 0
        for part in reversed(target.parts):
            place = self._place(part, create=True)
            width = place.view or place.width
            place.write(Value("b", width, value.bits >> low & mask(width)))
            low += width

    def _whole(self, name: str, value: Value) -> None:
        cell = self.cells.get(name)
        if isinstance(cell, Cell) and cell.fixed:
            width = min(cell.width, value.width)
            cell.write(0, Value(value.kind, width, value.bits & mask(width)))
        elif cell is None or isinstance(cell, Cell):
            self.cells[name] = Cell(value.bits, value.width, value.kind, fixed=False)
        else:
            raise NotPseudocode(f"{name} is assigned as a whole")

    def _loop(self, variable: str, first: Value, last: Value, body: g.Block) -> None:
        try:
            for at in range(first.integer, last.integer + 1):
                self.cells[variable] = Cell(at, 32, "i", fixed=False)
                self.run(body)
        except _Broken:
            pass

    def _declare(self, declared: g.Declare) -> None:
        if declared.name in self.cells:
            return  # an operand of the instruction
        if declared.name == "S":
            sources = tuple(self.cells[name] for name in ("S0", "S1", "S2"))
            self.cells["S"] = Row(tuple(cell for cell in sources if isinstance(cell, Cell)))
            return
        made = [Cell(0, declared.width, declared.kind, fixed=False) for _ in range(declared.length or 1)]
        self.cells[declared.name] = Row(tuple(made)) if declared.length else made[0]

    def value(self, expression: g.Expression) -> Value:
        """Return what the expression has for a value."""
        match expression:
            case g.Number(text, kind, width):
                return _literal(text, kind, width)
            case g.Name(name) if name in _CONSTANTS and name not in self.cells:
                return _CONSTANTS[name]
            case g.View(g.Name(name), type_name) if name in _CONSTANTS and name not in self.cells:
                return _seen(_CONSTANTS[name], type_name)
            case g.Cast(kind, width, inner):
                return values.converted(self.value(inner), kind, width)
            case g.Call(function, arguments):
                if function not in self.functions:
                    raise NotPseudocode(f"{function} is not known")
                return self.functions[function](self, tuple(self.value(argument) for argument in arguments))
            case g.Unary(operator, operand):
                return values.unary(operator, self.value(operand))
            case g.Binary(operator, left, right):
                return values.binary(operator, self.value(left), self.value(right))
            case g.Choice(condition, yes, no):
                return self.value(yes if self.value(condition).true else no)
            case g.Join(parts):
                return _joined([self.value(part) for part in parts])
            case _:
                return self._place(expression).read()

    def _place(self, expression: g.Expression, create: bool = False) -> _Place:
        match expression:
            case g.Name(name):
                return self._named(name, create)
            case g.View(g.Name(name), label) if values.typed(label) is None:
                return self._named(f"{name}.{label}", create=False)
            case g.View(base, label):
                kind_width = values.typed(label)
                if kind_width is None:
                    raise NotPseudocode(f".{label} is no type")
                place = self._place(base, create)
                width = kind_width[1] if getattr(place.cell, "open_ended", False) else place.width
                return _Place(place.cell, place.low, width, *kind_width)
            case g.Index(base, at):
                return self._element(base, self.value(at).integer, create)
            case g.Slice(base, high, low):
                place = self._place(base, create)
                first, last = self.value(low).integer, self.value(high).integer
                down = last < first
                first, last = min(first, last), max(first, last)
                return _Place(place.cell, place.low + first, last - first + 1, place.kind, reverse=down)
            case _:
                value = self.value(expression)
                return _Place(Cell(value.bits, value.width, value.kind), 0, value.width, value.kind)

    def _named(self, name: str, create: bool) -> _Place:
        if create and name not in self.cells:
            self.cells[name] = Cell(0, 0, fixed=False)
        cell = self.cells.get(name)
        if not _one(cell):
            raise NotPseudocode(f"{name} has no value here")
        return _Place(cell, 0, cell.width, cell.kind)

    def _element(self, base: g.Expression, index: int, create: bool) -> _Place:
        array = self._array(base)
        if array is None:
            place = self._place(base, create)
            return _Place(place.cell, place.low + index, 1, "u")
        cell = array.element(index)
        if not _one(cell):
            raise NotPseudocode("a row of an array stands where one element is expected")
        return _Place(cell, 0, cell.width, cell.kind)

    def _array(self, base: g.Expression) -> Cells | None:
        if isinstance(base, g.Name):
            cell = self.cells.get(base.name)
        elif isinstance(base, g.Index):
            outer = self._array(base.base)
            cell = outer.element(self.value(base.at).integer) if outer else None
        else:
            return None
        return cell if _many(cell) else None


def _one(cell: Bits | Cells | None) -> TypeGuard[Bits]:
    return hasattr(cell, "read")


def _many(cell: Bits | Cells | None) -> TypeGuard[Cells]:
    return hasattr(cell, "element")


def _closure(parameters: tuple[str, ...], body: g.Block) -> Builtin:
    def call(caller: Evaluation, arguments: tuple[Value, ...]) -> Value:
        bound = {name: Cell(v.bits, v.width, v.kind) for name, v in zip(parameters, arguments, strict=True)}
        inner = Evaluation(bound, caller.functions)
        try:
            inner.run(body)
        except _Returned as returned:
            return returned.value
        raise NotPseudocode("a function returned nothing")

    return call


def _literal(text: str, kind: str, width: int) -> Value:
    if kind != "f":
        return values.integer(int(text, 0), kind, width)
    return values.floating(formats.exact(Fraction(text)), width)


def _seen(constant: Value, type_name: str) -> Value:
    found = values.typed(type_name)
    if found is None or constant.kind == "denormal":
        return constant
    return values.converted(constant, *found)


def _joined(parts: list[Value]) -> Value:
    bits = width = 0
    for part in parts:
        bits, width = bits << part.width | part.bits, width + part.width
    return Value("b", width, bits)
