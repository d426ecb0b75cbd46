"""The evaluator's shared regions: layout, poison, and what counts as a change."""

from __future__ import annotations

import pytest
import torch

from hkbench.evaluation.arena import ALIGNMENT, Layout, SharedBuffer, fill, overlaps, same
from hkbench.protocol.memory import POISON
from hkbench.protocol.places import Argument, DictArgument, ListArgument, Place, PlainArgument, TensorArgument
from hkbench.sandbox.client import memory_file

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]


def held(value: object) -> tuple[SharedBuffer, Argument]:
    """An arena that holds `value`, and its places."""
    layout = Layout()
    places = layout.argument(value)
    arena = SharedBuffer.on_host(memory_file("test"), layout.size)
    fill(arena, places, value)
    return arena, places


def place_in(places: Argument) -> Place:
    assert isinstance(places, TensorArgument)
    return places.tensor


def test_places_are_aligned_and_apart() -> None:
    layout = Layout()
    tensors = [torch.zeros(3), torch.zeros(65), torch.zeros(0), torch.zeros(5, dtype=torch.uint8), torch.tensor(1.0)]
    places = [layout.place(tensor) for tensor in tensors]
    assert [place.offset for place in places] == [0, 256, 768, 768, 1024]
    assert all(place.offset % ALIGNMENT == 0 for place in places)
    assert layout.size == 1280


@pytest.mark.parametrize(
    ("tensor", "strides"),
    [
        (torch.arange(3.0).expand(4, 3), [3, 1]),
        (torch.arange(3.0)[:, None].expand(3, 4), [4, 1]),
        (torch.arange(300.0).as_strided((2, 3, 4), (0, 100, 1)), [12, 4, 1]),
        (torch.arange(9.0).unfold(0, 3, 1), [3, 1]),
        (torch.arange(12.0).reshape(3, 4).T, [1, 4]),
    ],
    ids=["rows", "columns", "wide", "windows", "transposed"],
)
def test_only_what_overlaps_is_laid_out_anew(tensor: torch.Tensor, strides: list[int]) -> None:
    arena, places = held(tensor)
    stored = arena.get(place_in(places))
    assert list(stored.stride()) == strides
    assert torch.equal(stored, tensor)
    assert same(arena, places, tensor)


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((), (), False), ((1, 1), (0, 0), False), ((0, 4), (0, 0), False), ((2, 3), (3, 1), False),
        ((2, 3), (0, 1), True), ((2, 3), (1, 1), True), ((2, 3), (2, 1), True), ((2, 3), (5, 1), False),
    ],
)  # fmt: skip
def test_overlaps(shape: tuple[int, ...], strides: tuple[int, ...], expected: bool) -> None:
    assert overlaps(shape, strides) is expected


@pytest.mark.parametrize("dtype", FLOATS)
def test_poison_reads_as_nan(dtype: torch.dtype) -> None:
    arena, places = held(torch.zeros(7, dtype=dtype))
    arena.poison()
    assert bool(torch.isnan(arena.get(place_in(places)).double()).all())


def test_poison_from_a_place_on_leaves_what_is_before_it() -> None:
    layout = Layout()
    places = [layout.place(torch.ones(3)) for _ in range(2)]
    arena = SharedBuffer.on_host(memory_file("test"), layout.size)
    for place in places:
        arena.put(place, torch.ones(3))
    arena.poison(layout.size)  # nothing is left there
    arena.poison(places[1].offset)
    assert torch.equal(arena.get(places[0]), torch.ones(3))
    assert bool((arena.region[places[1].offset :] == POISON).all())


@pytest.mark.parametrize("elements", [33, 64])  # an odd number is not compared as words of eight bytes
@pytest.mark.parametrize("skipped", [0, 1])  # nor is what begins within one
@pytest.mark.parametrize(
    "dtype", [*FLOATS, torch.int64, torch.int16, torch.uint8, torch.bool, torch.complex64, torch.complex128]
)
def test_one_changed_bit_is_seen(dtype: torch.dtype, skipped: int, elements: int) -> None:
    value = torch.ones(skipped + elements, dtype=torch.float32).to(dtype)[skipped:]
    arena, places = held(value)
    assert same(arena, places, value)
    last = elements * value.element_size() - 1
    for byte in (0, last // 2, last):
        arena.region[byte] ^= 1
        assert not same(arena, places, value)
        arena.region[byte] ^= 1
    assert same(arena, places, value)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.complex64])
def test_nan_is_the_same_and_minus_zero_is_not(dtype: torch.dtype) -> None:
    value = torch.tensor([float("nan"), 0.0, 1.0]).to(dtype)
    arena, places = held(value)
    assert same(arena, places, value)
    arena.get(place_in(places))[1] = torch.tensor(-0.0).to(dtype)
    assert not same(arena, places, value)


def test_nested_arguments() -> None:
    value = [torch.ones(2), {"k": (torch.zeros(3), 4)}, "text", None]
    arena, places = held(value)
    assert same(arena, places, value)
    match places:
        case ListArgument(
            list_=[
                _,
                DictArgument(dict_={"k": ListArgument(list_=[TensorArgument(tensor=inner), *_], tuple_=True)}),
                PlainArgument(value="text"),
                _,
            ]
        ):
            arena.get(inner)[1] = 5
        case _:
            pytest.fail(f"not the form of {value}: {places}")
    assert not same(arena, places, value)


def test_a_boolean_and_an_empty_tensor() -> None:
    for value in (torch.tensor([True, False]), torch.empty(0, 4), torch.tensor(2.5)):
        arena, places = held(value)
        assert same(arena, places, value)
        assert torch.equal(arena.get(place_in(places)), value)
