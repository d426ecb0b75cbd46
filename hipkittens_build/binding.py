"""Calls of a built extension: what the arguments have to be, and how they reach the launcher."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from hipkittens_build.builder import Bound
from hipkittens_build.source import DESCRIBE, LAUNCH

AXES = ("batch", "depth", "rows", "columns")  #: of a kittens::gl
ALIGNMENT = 16  #: bytes of the widest access
RANGE = 2**32  #: bytes; HipKittens gives the hardware a tensor's size modulo this, and nothing of a size of 0 is read
MAX_ELEMENTS = 2**31 - 1  #: HipKittens counts elements in 32 bits
_REMEMBERED = 256  #: shapes of one argument

Where = tuple[int, int]  #: (index of the device, raw stream)


def _current_gpu() -> Where:
    index = torch.cuda.current_device()
    # As Triton and torch.compile do: `torch.cuda.current_stream()` would make an object first, for a microsecond.
    return index, torch._C._cuda_getCurrentRawStream(index)


CURRENT_GPU: Callable[[], Where] = _current_gpu


class Extension:
    """A loaded library; its bound functions are attributes."""

    def __init__(self, name: str, library: Path, functions: Sequence[Bound], where: Callable[[], Where]) -> None:
        self.__name__ = name
        self.library = library
        loaded = ctypes.CDLL(str(library))
        for bound in functions:
            setattr(self, bound.name, Function(name, loaded, bound, where))

    def __getattr__(self, name: str) -> Any:
        """Only reached for what was not bound."""
        raise AttributeError(f"{self.__name__} has no bound function {name!r}: name it in build(..., functions)")


class Function:
    """One bound function. Calls take its members' values by position."""

    def __init__(self, extension: str, library: ctypes.CDLL, bound: Bound, where: Callable[[], Where]) -> None:
        self.__name__ = f"{extension}.{bound.name}"
        describe = library[DESCRIBE.format(bound.name)]
        describe.restype = ctypes.c_char_p
        lines = describe().decode().splitlines()
        self._arguments = [
            _argument(f"{self.__name__}: argument {member}", line.split(), bound.multiples[member])
            for member, line in zip(bound.members, lines, strict=True)
        ]
        self._members = ", ".join(bound.members)
        self._words = struct.Struct("=" + "".join(argument.code for argument in self._arguments))
        self._launch = library[LAUNCH.format(bound.name)]
        self._launch.argtypes = (ctypes.c_char_p, ctypes.c_void_p)
        self._launch.restype = ctypes.c_char_p
        self._where = where

    def __call__(self, *values: object) -> None:
        """Launch with these arguments on the current stream.

        Raises:
            TypeError: too few or too many arguments, no tensor or no number where one has to be, another dtype.
            ValueError: a tensor that is not contiguous, on another device, or of a shape that the kernel does not take.
            RuntimeError: the launch failed, or the function threw.
        """
        if len(values) != len(self._arguments):
            raise TypeError(
                f"{self.__name__} takes {len(self._arguments)} arguments ({self._members}), not {len(values)}"
            )
        device, stream = self._where()
        words: list[int | float] = []
        for argument, value in zip(self._arguments, values, strict=True):
            argument.add(value, device, words)
        error = self._launch(self._words.pack(*words), stream)
        if error is not None:
            raise RuntimeError(f"{self.__name__}: {error.decode(errors='replace')}")


class _Tensor:
    """A `kittens::gl` (with `sizes`), or a pointer to elements."""

    def __init__(self, what: str, dtype: str, sizes: tuple[int, ...], multiples: tuple[int, ...]) -> None:
        self._what = what
        self._dtype: torch.dtype = getattr(torch, dtype)
        self._sizes = sizes
        self._multiples = multiples
        self.code = "Q" + "q" * len(sizes)
        self._known: dict[tuple[torch.Size, torch.dtype, int, int], tuple[int, ...]] = {}

    def add(self, value: object, device: int, words: list[int | float]) -> None:
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"{self._what}: expected a tensor, got {type(value).__name__}")
        key = (value.shape, value.dtype, value.get_device(), device)
        dimensions = self._known.get(key)
        if dimensions is None:
            dimensions = self._checked(value, device)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = dimensions
        if not value.is_contiguous():
            raise ValueError(
                f"{self._what}: expected a contiguous tensor, got shape {tuple(value.shape)} with strides "
                f"{value.stride()}; pass .contiguous()"
            )
        address = value.data_ptr()
        if self._sizes and address % ALIGNMENT:
            raise ValueError(
                f"{self._what}: its first element is not at a multiple of {ALIGNMENT} bytes; pass .clone()"
            )
        words.append(address)
        words += dimensions

    def _checked(self, value: torch.Tensor, device: int) -> tuple[int, ...]:
        """Return the four dimensions of a gl, nothing for a pointer, of a tensor of this shape."""
        shape = tuple(value.shape)
        if value.dtype is not self._dtype:
            raise TypeError(f"{self._what}: expected {self._dtype}, got {value.dtype}")
        if value.get_device() != device:
            wanted = "the CPU" if device < 0 else f"the current GPU ({device})"
            raise ValueError(f"{self._what}: expected a tensor on {wanted}, got one on {value.device}")
        for multiple, axis in zip(reversed(self._multiples), range(1, 5), strict=False):
            size = shape[-axis] if axis <= len(shape) else 1
            if size % multiple:
                raise ValueError(
                    f"{self._what}: dimension {-axis} has to be a multiple of {multiple}, got shape {shape}"
                )
        if not self._sizes:
            return ()
        if len(shape) > len(AXES):
            raise ValueError(f"{self._what}: expected at most 4 dimensions, got shape {shape}; pass a view of fewer")
        if 0 in shape:
            raise ValueError(f"{self._what}: expected at least one element, got shape {shape}")
        dimensions = (*(1,) * (len(AXES) - len(shape)), *shape)
        for name, wanted_size, size in zip(AXES, self._sizes, dimensions, strict=True):
            if wanted_size not in (-1, size):
                raise ValueError(f"{self._what}: the source fixes {wanted_size} {name}, got {size} (shape {shape})")
        if value.numel() > MAX_ELEMENTS or value.numel() * value.element_size() % RANGE == 0:
            raise ValueError(
                f"{self._what}: HipKittens cannot address shape {shape}: a tensor has less than 2^31 elements, and its "
                "bytes are not a multiple of 4 GiB; pass it in parts"
            )
        return dimensions


class _Range(NamedTuple):
    least: int
    most: int


class _Number:
    def __init__(self, what: str, kind: str, bits: int) -> None:
        self._what = what
        self._kind = kind
        self.code = {"float": "d", "unsigned": "Q", "bool": "Q"}.get(kind, "q")
        self._range = {
            "unsigned": _Range(0, 2**bits - 1),
            "signed": _Range(-(2 ** max(bits - 1, 0)), 2 ** max(bits - 1, 0) - 1),
        }.get(kind, _Range(0, 1))

    def add(self, value: object, _device: int, words: list[int | float]) -> None:
        if self._kind == "float":
            if not isinstance(value, (float, int)):
                raise TypeError(f"{self._what}: expected a number, got {type(value).__name__}")
            words.append(float(value))
            return
        if not isinstance(value, int) or (self._kind == "bool") is not isinstance(value, bool):
            raise TypeError(
                f"{self._what}: expected {'True or False' if self._kind == 'bool' else 'an int'}, got {value!r}"
            )
        if not self._range.least <= value <= self._range.most:
            raise ValueError(f"{self._what}: {value} is not between {self._range.least} and {self._range.most}")
        words.append(value)


def _argument(what: str, described: Sequence[str], multiples: tuple[int, ...]) -> _Tensor | _Number:
    """Read a line of launcher.h's `described`."""
    kind, *rest = described
    if kind in ("layout", "pointer"):
        dtype, *sizes = rest
        return _Tensor(what, dtype, tuple(map(int, sizes)), multiples)
    if multiples:
        raise ValueError(f"{what}: it is a number and has no dimensions: give no multiples for it")
    return _Number(what, kind, int(rest[0]) if rest else 0)
