"""How a model service is called."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from hkbench.records import Record

CALLS_AT_ONCE = 8  #: unless told otherwise


class ModelSettings(Record):
    """Settings of `OpenAIClient`. Times in seconds; `None` leaves the choice to the service."""

    model: str
    base_url: str | None = None
    api: Literal["chat", "responses"] = "chat"
    temperature: float | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    reasoning_effort: str | None = None
    timeout: float = Field(default=1200.0, gt=0)  #: of one call, from its start to the reply's last byte
    connect_timeout: float = Field(default=15.0, gt=0)
    concurrency: int = Field(default=CALLS_AT_ONCE, ge=1)  #: calls under way at once
    outage: float = Field(default=1800.0, ge=0)  #: for how long a service that gives no answer is asked again
    max_tries: int = Field(default=6, ge=1)  #: whose answers break off or cannot be used: each may have been paid for
    first_wait: float = Field(default=1.0, ge=0)  #: before the second try; doubled after each, with jitter
    longest_backoff: float = Field(default=60.0, ge=0)  #: of our own waits
    longest_wait: float = Field(default=300.0, ge=0)  #: of a wait that the service asks for (Retry-After)
    stream: bool = True  #: off for gateways that refuse streams
    extra_body: dict[str, JsonValue] = Field(default_factory=dict)  #: added to the request as it is
