"""The model client that the arguments ask for."""

from __future__ import annotations

import argparse
from urllib.parse import urlsplit

from hkbench.errors import UsageError
from hkbench.llm.client import ModelClient
from hkbench.llm.key import api_key, base_url
from hkbench.llm.openai_client import OpenAIClient
from hkbench.llm.replay import ReplayClient
from hkbench.llm.settings import ModelSettings
from hkbench.records import Backend


def check_model(options: argparse.Namespace) -> None:
    """Before anything is spent or started: a model and a key, or a folder of replies.

    Raises:
        UsageError, ReplayMissing
    """
    if options.replay is not None:
        ReplayClient(options.replay, Backend.CPP)
        return
    api_key()
    base_url(options.base_url)
    if not options.model:
        raise UsageError("name the model with --model, or serve recorded replies with --replay DIR")


def shown_base_url(options: argparse.Namespace) -> str | None:
    """The endpoint as a run records it: where it came from does not matter, and no password goes into a file."""
    address = None if options.replay is not None else base_url(options.base_url)
    if address is None:
        return None
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def judge_model(options: argparse.Namespace) -> str:
    """Who is asked as the judge; recorded replies have no model."""
    return options.judge_model or options.model or "replay"


def make_client(options: argparse.Namespace, backend: Backend, model: str | None = None) -> ModelClient:
    """A client of `model`, else of --model."""
    if options.replay is not None:
        return ReplayClient(options.replay, backend)
    settings = ModelSettings(
        model=model or options.model,
        base_url=base_url(options.base_url),
        api=options.api,
        temperature=options.temperature,
        max_tokens=options.max_reply_tokens,
        reasoning_effort=options.reasoning_effort,
        timeout=options.model_timeout,
        concurrency=options.concurrency,
        stream=not options.no_stream,
    )
    return OpenAIClient(settings, api_key())
