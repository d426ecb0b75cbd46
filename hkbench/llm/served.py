"""Whether a service will serve a run, found by one short exchange before anything is paid for.

First its list of models, which costs nothing. Where that does not settle it (there is no list, or the model is not on
it: gateways have aliases), a call whose reply may have a few tokens does, with the run's own options.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Sequence

from hkbench.errors import AccessRefused, ModelUnavailable
from hkbench.llm.openai_client import OpenAIClient
from hkbench.llm.reach import Reached, reach
from hkbench.llm.retry import Transient
from hkbench.llm.settings import ModelSettings

_QUESTION = "Answer with one word: ready."
_FEW_TOKENS = 16  #: the fewest that the Responses API takes as a limit
_SECONDS = 30.0  #: of the short call: a local server may have to load the model
_NEAR = 3  #: names like the one that is not listed


async def check_served(settings: ModelSettings, key: str, models: Sequence[str]) -> list[str]:
    """Return what was found, a line each: of the service, and of each of `models` that its list did not settle.

    `settings` are those of the run's calls; the model in them is not looked at. A service that has an outage is no
    error: the run waits it out.

    Raises:
        ModelUnavailable: the service cannot be reached, or refuses key, model or options.
    """
    found = await asyncio.to_thread(reach, settings.base_url, key)
    if not found.connected:
        raise ModelUnavailable(f"{found.address}: {found.said}; {found.problem}")
    unsettled = [model for model in dict.fromkeys(models) if model not in (found.models or ())]
    calls = [await _called(settings.model_copy(update={"model": model}), key, found) for model in unsettled]
    return [f"{found.address}: {found.said}", *calls]


async def _called(settings: ModelSettings, key: str, found: Reached) -> str:
    """Return what a short call to one model came to."""
    few = settings.model_copy(update={"max_tokens": _FEW_TOKENS, "timeout": min(settings.timeout, _SECONDS)})
    unlisted = _unlisted(settings.model, found)
    try:
        try:
            await _call(few, key)
        except AccessRefused:
            raise
        except (ModelUnavailable, Transient) as error:
            if isinstance(error, Transient) and (error.outage or error.slow):
                raise
            # Some models refuse so small a limit, or leave the text empty. Without it they say what is wrong.
            await _call(few.model_copy(update={"max_tokens": settings.max_tokens}), key)
    except Transient as error:
        if error.outage or error.slow:
            return f"{settings.model} gives no answer at the moment ({error})"
        advice = "check --base-url: addresses often end in /v1"
        raise ModelUnavailable(f"{found.address} gives no usable answer: {error}; {advice}{unlisted}") from None
    except ModelUnavailable as error:
        refusal = type(error)(f"{error}{unlisted}")
        refusal.status = error.status
        raise refusal from None
    return f"{settings.model} answers a short call{unlisted}"


async def _call(settings: ModelSettings, key: str) -> None:
    client = OpenAIClient(settings, key)
    try:
        await client.try_once(_QUESTION)
    finally:
        await client.close()


def _unlisted(model: str, found: Reached) -> str:
    if found.models is None:
        return ""
    near = difflib.get_close_matches(model, found.models, _NEAR)
    like = f"; names like it: {', '.join(near)}" if near else ""
    return f" ({model} is not among the {len(found.models)} models that the service lists{like})"
