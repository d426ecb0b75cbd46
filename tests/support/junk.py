"""Values that JSON can carry and nobody expects, drawn from a seed: what a runner may send in place of an answer."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 7, 2**31, 2**63, -(2**64), 10**400, -(10**4000), 0.0, -0.0, 0.5, 1e-320, 1e308, -1e308,
    float("nan"), float("inf"), float("-inf"), "", "x", "\x00\x1b[2J", "\ud800", "a" * 5000, "float32", "../..",
    "é\u202e", [], {}, [[]], {"": {}}, [None], {"path": "output"}, [10**400], ["a", 1],
    [float("inf")], [float("nan"), 2], ["2", "3"],
)  # fmt: skip


class Junk:
    """Draw values; the same seed draws the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def value(self, depth: int = 3) -> Any:
        """Anything at all."""
        kind = self._random.randrange(8) if depth else 0
        if kind == 1:
            return [self.value(depth - 1) for _ in range(self._random.randrange(5))]
        if kind == 2:
            return {self.key(): self.value(depth - 1) for _ in range(self._random.randrange(5))}
        if kind == 3:
            return self.nested(self._random.choice((60, 70, 300)))
        return copy.deepcopy(self._random.choice(ODD))

    def odd(self) -> bool:
        """Return one time in three."""
        return self._random.random() < 1 / 3

    def key(self) -> str:
        return self._random.choice(("", "ok", "event", "leaves", "path", "a\ud800", "seconds", "k" * 300))

    def nested(self, depth: int) -> Any:
        found: Any = self._random.choice(ODD)
        for _ in range(depth):
            found = [found] if self._random.random() < 0.5 else {"a": found}
        return found

    def like(self, good: Any) -> Any:
        """Return a copy of a good value of which one to three parts are replaced, left out, repeated or renamed."""
        found = copy.deepcopy(good)
        for _ in range(self._random.randrange(1, 4)):
            found = self._spoiled(found)
        return found

    def _spoiled(self, value: Any) -> Any:
        if not value or not isinstance(value, (dict, list)) or self._random.random() < 0.1:
            return self.value()
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = self._random.choice(keys)
        if self._random.random() < 0.6:
            value[key] = self._spoiled(value[key])
        elif self._random.random() < 0.5:
            del value[key]
        elif isinstance(value, dict):
            value[self.key()] = value[key]
        else:
            value += value[key : key + 1] * self._random.choice((1, 300))
        return value

    def text(self, good: bytes) -> bytes:
        """Bytes of which some are changed, cut out or put in."""
        data = bytearray(good)
        for _ in range(self._random.randrange(1, 6)):
            at = self._random.randrange(len(data) + 1)
            piece = self._random.choice(
                (b"", b"\xff", b"\x00", b"[" * 300, b'"', b"}", b"\\ud800", b"9" * 5000, b"NaN", b"\n")
            )
            data[at : at + self._random.choice((0, 1, 30))] = piece
        return bytes(data)


def arrived(value: Any) -> Iterator[Any]:
    """Yield a value as it arrives by the wire; nothing where it does not."""
    from hkbench.protocol import wire

    try:
        yield wire.parse(json.dumps({"value": value}).encode())["value"]
    except (wire.WireError, ValueError, RecursionError):
        return
