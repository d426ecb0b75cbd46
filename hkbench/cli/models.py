"""The model client that the arguments ask for."""

from __future__ import annotations

import argparse
from urllib.parse import urlsplit

from hkbench.cli.configuration import MODEL_VARIABLE
from hkbench.cli.fields import options_of
from hkbench.errors import UsageError
from hkbench.headline import NO_MODEL, REPLAYED
from hkbench.llm.client import ModelClient, NobodyClient
from hkbench.llm.key import (
    ADDRESS_ADVICE,
    KEY_VARIABLES,
    OPENAI_KEY,
    api_key,
    base_url,
    known_key,
    unaddressed,
)
from hkbench.llm.openai_client import OpenAIClient
from hkbench.llm.replay import ReplayClient
from hkbench.llm.settings import CALLS_AT_ONCE, ModelSettings
from hkbench.records import BackendName, DeviceKind
from hkbench.registry import default_backend
from hkbench.strategies import find_strategy


def check_model(options: argparse.Namespace) -> None:
    """Check, before anything is spent or started: a model, a key and an address for it, or recorded replies.

    The options are `configure`d.

    Raises:
        UsageError, ReplayMissing
    """
    if not asks_model(options):
        return
    if options.replay is not None:
        ReplayClient(options.replay, options.backend or default_backend(DeviceKind.CPU))
        return
    missing = []
    if known_key(options.base_url) is None:
        missing.append(f"the key in {' or '.join(KEY_VARIABLES)} (for a local server without keys, any value works)")
    if not options.model:
        missing.append(f"the model in {MODEL_VARIABLE} (or --model, or model in hkbench.toml)")
    if options.base_url is None and (known_key(None) is None or unaddressed(None) is not None):
        openai = f"; with the key in {OPENAI_KEY} it is OpenAI's"
        missing.append(f"the service's address in {ADDRESS_ADVICE}{openai}")
    if missing:
        raise UsageError(
            f"which model to ask is not known: set {', '.join(missing)}. --replay PATH serves recorded replies instead"
        )


def asks_model(options: argparse.Namespace) -> bool:
    """Tell whether a command asks a model at all: a strategy may do without."""
    if getattr(options, "strategy", None) is None:
        return True
    strategy = find_strategy(options.strategy)
    return strategy.asks_model(options_of(strategy.Options, options))


def calls_service(options: argparse.Namespace) -> bool:
    """Tell whether a model service is called: not for recorded replies, nor where no model is asked."""
    return options.replay is None and asks_model(options)


def model_name(options: argparse.Namespace) -> str:
    """Return what a run records as its model."""
    return (options.model or REPLAYED) if asks_model(options) else NO_MODEL


def shown_base_url(options: argparse.Namespace) -> str | None:
    """Return the endpoint as a run records it: where it came from does not matter, and no password goes into a file."""
    address = base_url(options.base_url) if calls_service(options) else None
    if address is None:
        return None
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def judge_model(options: argparse.Namespace) -> str:
    """Return the model that answers as the judge; recorded replies have none."""
    return options.judge_model or options.model or "replay"


def make_client(options: argparse.Namespace, backend: BackendName, model: str | None = None) -> ModelClient:
    """Return a client of `model`, else of --model."""
    if not asks_model(options):
        return NobodyClient()
    if options.replay is not None:
        return ReplayClient(options.replay, backend)
    return OpenAIClient(*service_of(options, model))


def service_of(options: argparse.Namespace, model: str | None = None) -> tuple[ModelSettings, str]:
    """Return how `model`, else --model, is called, and the key for it. Raises UsageError where there is none."""
    address = base_url(options.base_url)
    settings = ModelSettings(
        model=model or options.model,
        base_url=address,
        api=options.api,
        temperature=options.temperature,
        max_tokens=options.max_reply_tokens,
        reasoning_effort=options.reasoning_effort,
        timeout=options.model_timeout,
        outage=options.outage,
        concurrency=options.concurrency or CALLS_AT_ONCE,
        stream=not options.no_stream,
    )
    return settings, api_key(address)
