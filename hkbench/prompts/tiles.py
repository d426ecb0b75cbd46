"""How a problem's tensors fit HipKittens' tiles: what divides what, what to do with the rest, how to cut long rows.

HipKittens masks nothing: each dimension has to be a multiple of the tile or vector that walks it. Register tiles come
in 16x16 base shapes, on CDNA4 also in 16x32, 32x16 and 32x32; flat vectors in multiples of the 64 lanes of a wave.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from hkbench.prompts.context import Dialect
from hkbench.prompts.figures import contiguous, tensors
from hkbench.records import ProblemFacts, Record, TensorFact

TILES = (16, 32, 64, 128, 256)
LANES = 64  #: of a wave; a flat vector's length is a multiple of it
VECTORS = (512, 256, 128, 64)  #: lengths of flat vectors, the widest access first
ROW_OF_A_WAVE = 2048  #: elements: 32 fp32 registers a lane for each vector that is alive
MAX_WAVES = 16  #: of a workgroup of 1024 threads
TILE_SPAN = 1 << 26  #: bytes from a tile's first to its last: 256 rows of 65536 fp32
MAX_SIZES = 6  #: rows of the table
MAX_NAMES = 4  #: dimensions named in a row of it

_FOR_TILES = ("float32", "bfloat16", "float16")  #: the types of global layouts in both dialects
_VECTOR: Mapping[Dialect, str] = {"cdna3": "rv_fl<{}>", "cdna4": "rv_naive<float, {}>"}


class RowPlan(Record):
    """How waves share a row: `pieces` vectors of `vector` elements, `held` of them in each wave's registers at once."""

    length: int
    padded: int  #: pieces * vector; more than `length` where 64 does not divide that
    vector: int
    pieces: int
    waves: int
    parts: int  #: that the waves take one after the other; more than one means a second read of the row
    held: int  #: ceil(pieces / (waves * parts))


def tile_table(facts: ProblemFacts, dialect: Dialect) -> list[str]:
    """Return Markdown: a table with a line for each size of the last two dimensions, then notes; some 12 lines.

    A dimension is named by tensor and place ("x[1]"): what it means to the problem is not known here.
    """
    named = [*tensors(facts.inputs), *facts.parameters, *tensors(facts.outputs)]
    places = _places(named)
    small = [size for size in places if size < TILES[0]]
    sizes = sorted((size for size in places if size >= TILES[0]), key=lambda size: (size % LANES == 0, -size))
    lines = []
    for size in sizes[:MAX_SIZES]:
        fitting = " ".join(str(tile) for tile in TILES if size % tile == 0) or "none"
        lines.append(f"| {size} | {_names(places[size])} | {fitting} | {_rest(size, dialect)} |")
    if small:
        where = _names([name for size in small for name in places[size]])
        lines.append(f"| {', '.join(map(str, small))} | {where} | none | below every tile: a loop, or plain HIP |")
    if len(sizes) > MAX_SIZES:
        lines.append(f"| {len(sizes) - MAX_SIZES} more sizes | | | |")
    if lines:
        lines = ["| size | dimensions | tiles that divide it | the rest |", "| --- | --- | --- | --- |", *lines, ""]
    return [*lines, *(f"- {note}" for note in _notes(named))]


def row_plans(facts: ProblemFacts) -> list[RowPlan]:
    """Return how waves share a row along the inputs' last dimensions, the longest first. At most three."""
    wide: dict[int, int] = {}  # length -> the elements of 16 bytes a lane, of the widest type
    for fact in tensors(facts.inputs):
        if len(fact.shape) > 1 and fact.shape[-1] >= LANES and fact.dtype in _FOR_TILES:
            length = fact.shape[-1]
            wide[length] = min(wide.get(length, VECTORS[0]), VECTORS[1 if fact.dtype == "float32" else 0])
    return [_plan(length, wide[length]) for length in sorted(wide, reverse=True)[:3]]


def describe_plan(plan: RowPlan, dialect: Dialect) -> str:
    """Return one line on rows of that length, in the dialect's types."""
    held = f"`{_VECTOR[dialect].format(plan.vector)} v[{plan.held}]`"
    text = f"Rows of {plan.length}"
    if plan.padded != plan.length:
        whole = plan.length - plan.length % LANES
        text += (
            f" ({LANES} does not divide it: pad to {plan.padded} with the neutral value and divide by the true length, "
            f"or take the last {plan.length - whole} after {whole} in plain HIP)"
        )
    if plan.waves == 1:
        return f"{text}: one wave holds a row, in {held}."
    text += f" are longer than one wave holds ({ROW_OF_A_WAVE}): {plan.waves} waves share a row, each {held}"
    if plan.parts == 1:
        text += f" at piece `warpid() * {plan.held} + i` of {plan.pieces}"
    else:
        text += f", in {plan.parts} parts one after the other"
    if plan.held * plan.waves * plan.parts != plan.pieces:
        text += f" (pieces from {plan.pieces} on: no load, the neutral value)"
    if plan.parts == 1:
        return f"{text}; their partial results meet in LDS."
    return (
        f"{text}: statistics in a first pass (a running maximum with a rescaled sum for softmax), then a second pass "
        "for the output."
    )


def _plan(length: int, widest: int) -> RowPlan:
    fitting = [size for size in VECTORS if size <= widest]
    if length % LANES == 0:
        vector = next(size for size in fitting if length % size == 0)
    else:  # a sixteenth more to read is less than what narrow accesses cost
        vector = next((size for size in fitting if _up(length, size) <= length + length // 16), LANES)
    pieces = _up(length, vector) // vector
    most = ROW_OF_A_WAVE // vector
    waves = next((count for count in (1, 2, 4, 8) if pieces <= count * most), MAX_WAVES)
    parts = math.ceil(pieces / (waves * most))
    return RowPlan(
        length=length, padded=pieces * vector, vector=vector, pieces=pieces, waves=waves, parts=parts,
        held=math.ceil(pieces / (waves * parts)),
    )  # fmt: skip


def _places(named: Iterable[TensorFact]) -> dict[int, list[str]]:
    """Return size -> the last two dimensions that have it, sizes of 0 and 1 left out."""
    places: dict[int, list[str]] = {}
    for fact in named:
        last = len(fact.shape)
        for axis in range(max(0, last - 2), last):
            if fact.shape[axis] > 1:
                places.setdefault(fact.shape[axis], []).append(f"{fact.name}[{axis}]")
    return places


def _names(places: list[str]) -> str:
    more = len(places) - MAX_NAMES
    return ", ".join(places[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def _rest(size: int, dialect: Dialect) -> str:
    if size % LANES == 0:
        return "none"
    if size % 16:
        whole = size - size % 16
        narrow, wide = _up(size, 16), _up(size, LANES)
        up = f"{narrow} (16)" if narrow == wide else f"{narrow} (16) or {wide} (64)"
        return f"pad to {up}, or the last {size - whole} after {whole} in plain HIP"
    text = f"pad to {_up(size, LANES)} for flat vectors and 64-wide tiles"
    if dialect == "cdna4" and size % 32:
        text += "; in products: as K `rt_32x16_s` operands, as M or N `rt_16x32_s` operands"
    return text


def _notes(named: list[TensorFact]) -> Iterator[str]:
    yield from _flat(named)
    other = [f"{fact.name} ({fact.dtype})" for fact in named if fact.dtype not in _FOR_TILES]
    if other:
        yield f"No tile type: {', '.join(other[:MAX_NAMES])}; read and write these in plain HIP."
    turned = [fact.name for fact in named if fact.strides != contiguous(fact.shape)]
    if turned:
        yield f"Not contiguous: {', '.join(turned[:MAX_NAMES])}; `gl` knows dense row-major memory only."
    deep = [fact.name for fact in named if len(fact.shape) > 4]
    if deep:
        yield f"More than 4 dimensions: {', '.join(deep[:MAX_NAMES])}; merge neighbouring ones for `gl`."
    large = [fact.name for fact in named if _too_large(fact)]
    if large:
        yield f"Too large for one `gl` (32-bit counts): {', '.join(large[:MAX_NAMES])}; one `gl` for each half."


def _flat(named: list[TensorFact]) -> Iterator[str]:
    """Yield the view of dense tensors as one long row, which operators without reductions can take."""
    counts: dict[int, list[str]] = {}
    for fact in named:
        count = math.prod(fact.shape)
        if len(fact.shape) > 1 and fact.dtype in _FOR_TILES and fact.strides == contiguous(fact.shape):
            counts.setdefault(count, []).append(fact.name)
    shared = {count: names for count, names in counts.items() if count >= VECTORS[0]}
    if not shared:
        return
    count, names = max(shared.items(), key=lambda item: len(item[1]))
    rest = count % VECTORS[0]
    tail = f", the last {rest} in plain HIP" if rest else ""
    yield f"Seen flat: {_names(names)}: {count} elements, {count // VECTORS[0]} vectors of {VECTORS[0]}{tail}."


def _too_large(fact: TensorFact) -> bool:
    """Return whether HipKittens' 32-bit counts fail it.

    Places are counted in an int; the bytes that a tile load may read are the whole tensor's modulo 2^32, from the tile
    on, so that a remainder below what a tile spans gives zeros.
    """
    count = math.prod(fact.shape)
    size = count * (4 if fact.dtype == "float32" else 2)
    return fact.dtype in _FOR_TILES and (count >= 1 << 31 or (size >= 1 << 32 and size % (1 << 32) < TILE_SPAN))


def _up(size: int, step: int) -> int:
    return -(-size // step) * step
