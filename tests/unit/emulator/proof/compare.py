"""What differs between two waves, said so that a person sees which lane and which register."""

from __future__ import annotations

import numpy as np
from unit.emulator.proof.formats import Format
from unit.emulator.proof.values import FORMATS, mask
from unit.emulator.proof.wave import Wave

_SHOWN = 6


def differences(expected: Wave, actual: Wave, ulp: int = 0) -> list[str]:
    """Return a line for each register that is not as expected, the first few.

    Where floating point was written, a NaN is as good as another, and `ulp` units in the last place are allowed.
    """
    found = [
        f"{name}: {have:#x}, expected {want:#x}"
        for name, want, have in (
            ("exec", expected.exec, actual.exec),
            ("scc", expected.scc, actual.scc),
            ("m0", expected.m0, actual.m0),
        )
        if want != have
    ]
    pairs = enumerate(zip(expected.sgpr, actual.sgpr, strict=True))
    found += [f"s{i}: {have:#x}, expected {want:#x}" for i, (want, have) in pairs if want != have]
    for name, want_all, have_all in (("v", expected.vgpr, actual.vgpr), ("a", expected.agpr, actual.agpr)):
        for register, lane in np.argwhere(want_all != have_all).tolist():
            want, have = int(want_all[register, lane]), int(have_all[register, lane])
            if name == "v" and _same_floats(expected, actual, register, lane, ulp):
                continue
            found.append(f"{name}{register}[{lane}]: {have:#x}, expected {want:#x}")
    found += _bytes("lds", expected.lds, actual.lds) + _bytes("memory", expected.memory, actual.memory)
    return found[:_SHOWN] + ([f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else [])


def _bytes(name: str, expected: bytearray, actual: bytearray) -> list[str]:
    if expected == actual:
        return []
    pairs = zip(expected, actual, strict=True)
    return [f"{name}[{at:#x}]: {have:#x}, expected {want:#x}" for at, (want, have) in enumerate(pairs) if want != have]


def _same_floats(expected: Wave, actual: Wave, register: int, lane: int, ulp: int) -> bool:
    """Say whether a register's bits differ only where that is allowed."""
    if (wide := expected.floats.get((register - 1, lane, 0))) == ("f", 64):
        return _same(expected, actual, register - 1, lane, 0, wide, ulp)
    places = [(low, kind) for low in (0, 16) if (kind := expected.floats.get((register, lane, low)))]
    covered = sum(mask(min(32, kind[1])) << low for low, kind in places)
    others = ~covered & mask(32)
    if not places or int(expected.vgpr[register, lane]) & others != int(actual.vgpr[register, lane]) & others:
        return False
    return all(_same(expected, actual, register, lane, low, kind, ulp) for low, kind in places)


def _same(expected: Wave, actual: Wave, register: int, lane: int, low: int, kind: tuple[str, int], ulp: int) -> bool:
    codes = [wave.vector(register, lane, max(32, kind[1])) >> low & mask(kind[1]) for wave in (expected, actual)]
    return same_codes(FORMATS[kind], codes[0], codes[1], ulp)


def same_codes(form: Format, want: int, have: int, ulp: int = 0) -> bool:
    """Say whether two codes are equal, both NaN, or at most `ulp` steps of the format apart."""
    if want == have or (form.is_nan(want) and form.is_nan(have)):
        return True
    if form.is_nan(want) or form.is_nan(have):
        return False
    return abs(_step(form, want) - _step(form, have)) <= ulp


def _step(form: Format, code: int) -> int:
    magnitude = code & (form.sign_bit - 1)
    return -magnitude if code & form.sign_bit else magnitude
