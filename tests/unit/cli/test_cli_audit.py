from __future__ import annotations

import pytest

from hkbench.cli.audit import _numbers
from hkbench.errors import UsageError


def test_ranges() -> None:
    assert _numbers(["7", "10-12"]) == {7, 10, 11, 12}
    assert _numbers([]) is None


@pytest.mark.parametrize("text", ["x", "3-", "9-2", "-4"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a range"):
        _numbers([text])
