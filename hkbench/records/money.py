"""What a model's tokens cost."""

from __future__ import annotations

from pydantic import Field

from hkbench.records.base import Record


class Rates(Record):
    """Money for a million tokens."""

    input: float = Field(ge=0, allow_inf_nan=False, strict=True)
    cached_input: float | None = Field(default=None, ge=0, allow_inf_nan=False, strict=True)  #: `None`: as `input`
    output: float = Field(ge=0, allow_inf_nan=False, strict=True)  #: reasoning included


class Price(Record):
    """The price of a run's model, kept with the run so that its report stays what it was."""

    currency: str  #: "USD"
    entry: str  #: of the price file: the model's name, or the beginning of it and a star
    rates: Rates
    source: str  #: the file
