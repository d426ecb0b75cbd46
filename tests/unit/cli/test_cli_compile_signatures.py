"""`--signature` of `hkbench compile`."""

from __future__ import annotations

import pytest

from hkbench.cli.compile import signatures
from hkbench.errors import UsageError


def test_a_name_is_optional_and_alignment_is_no_name() -> None:
    assert signatures(["*fp32, i32, 64"]) == {"": ("*fp32", "i32", "64")}
    assert signatures(["add: *fp32:16, 64", "scale: *fp32"]) == {"add": ("*fp32:16", "64"), "scale": ("*fp32",)}
    assert signatures(["*fp32:16, 64"]) == {"": ("*fp32:16", "64")}


@pytest.mark.parametrize("texts", [[""], ["add:"], ["add: *fp32,, 3"], ["add: 1", "add: 2"]])
def test_what_is_no_signature_is_an_error(texts: list[str]) -> None:
    with pytest.raises(UsageError, match="--signature"):
        signatures(texts)
