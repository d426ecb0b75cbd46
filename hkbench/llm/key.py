"""Where the key and the address of the model service come from."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from hkbench.errors import UsageError

GATEWAY_KEY, OPENAI_KEY, GOOGLE_KEY = "LLM_GATEWAY_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY"
KEY_VARIABLES = (GATEWAY_KEY, OPENAI_KEY, GOOGLE_KEY)
ADDRESS_VARIABLES = ("LLM_GATEWAY_URL", "OPENAI_BASE_URL")
OPENAI_ADDRESS = "https://api.openai.com/v1"  #: of the library that calls services, where none is named
#: Of Gemini, as OpenAI's protocol; it is called where no address is named and Google's key is the only one.
GOOGLE_ADDRESS = "https://generativelanguage.googleapis.com/v1beta/openai/"
ADDRESS_ADVICE = "LLM_GATEWAY_URL (or --base-url, or base_url in hkbench.toml)"  #: where an address is put
MIN_SECRET_LENGTH = 8  #: shorter keys ("EMPTY", "none") are placeholders of local servers


def api_key(address: str | None) -> str:
    """Return the key for the service at `address` (None: OpenAI's own).

    Raises:
        UsageError: no variable holds a key, or it is a gateway's and no address says which one.
    """
    found = known_key(address)
    if found is None:
        raise UsageError(
            f"no key for the model service: set {' or '.join(KEY_VARIABLES)} "
            "(for a local server without keys, any value works), or use --replay PATH for recorded replies"
        )
    problem = unaddressed(address)
    if problem is not None:
        raise UsageError(problem)
    return found


def unaddressed(address: str | None) -> str | None:
    """Return what to set where a gateway's key would go to OpenAI's address, since no other one is known; else None."""
    if address is not None or not _variable(GATEWAY_KEY):
        return None
    return (
        f"{GATEWAY_KEY} is set, and no address to send it to: set {ADDRESS_ADVICE}; for OpenAI itself put the key "
        f"into {OPENAI_KEY} in its place"
    )


def known_key(address: str | None) -> str | None:
    """Return the key for a service, where a variable holds one: Google's own address gets Google's key first."""
    names = sorted(KEY_VARIABLES, key=lambda name: name != GOOGLE_KEY) if _is_google(address) else KEY_VARIABLES
    return next((value for value in map(_variable, names) if value), None)


def _is_google(address: str | None) -> bool:
    try:
        return urlsplit(address or "").hostname == urlsplit(GOOGLE_ADDRESS).hostname
    except ValueError:
        return False


def base_url(option: str | None, configured: str | None = None) -> str | None:
    """Return the service's address: `option` (--base-url), LLM_GATEWAY_URL, OPENAI_BASE_URL or `configured`.

    Where nobody names one it is Gemini's if Google's key is the only one, else None.

    Raises UsageError when the address is not an http(s) one.
    """
    variables = ((name, _variable(name)) for name in ADDRESS_VARIABLES)
    for source, value in (("--base-url", option), *variables, ("base_url in hkbench.toml", configured)):
        address = (value or "").strip()
        if not address:
            continue
        if not address.startswith(("http://", "https://")):
            raise UsageError(f"{source} is {address!r}: it has to begin with http:// or https://")
        return address
    only_google = _variable(GOOGLE_KEY) and not (_variable(GATEWAY_KEY) or _variable(OPENAI_KEY))
    return GOOGLE_ADDRESS if only_google else None


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip()


def redact(text: str, key: str) -> str:
    """Return `text` without the key, for messages and replies that may echo it."""
    return text.replace(key, "[key]") if len(key) >= MIN_SECRET_LENGTH else text
