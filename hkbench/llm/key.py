"""Where the key and the address of the model service come from."""

from __future__ import annotations

import os

from hkbench.errors import UsageError

KEY_VARIABLES = ("LLM_GATEWAY_KEY", "OPENAI_API_KEY")
SHORTEST_SECRET = 8  #: shorter keys ("EMPTY", "none") are placeholders of local servers


def api_key() -> str:
    """The key for the model service. Raises UsageError when neither variable holds one."""
    found = known_key()
    if found is not None:
        return found
    raise UsageError(
        f"no key for the model service: set {' or '.join(KEY_VARIABLES)} "
        "(a local server that needs none takes any word), or use --replay DIR for recorded replies"
    )


def known_key() -> str | None:
    """The key, where a variable holds one."""
    values = (os.environ.get(name, "").strip() for name in KEY_VARIABLES)
    return next((value for value in values if value), None)


def base_url(option: str | None) -> str | None:
    """The service's address: `option` (--base-url), else OPENAI_BASE_URL, else None (the library's own).

    Raises UsageError when the address is not an http(s) one.
    """
    for source, value in (("--base-url", option), ("OPENAI_BASE_URL", os.environ.get("OPENAI_BASE_URL"))):
        address = (value or "").strip()
        if not address:
            continue
        if not address.startswith(("http://", "https://")):
            raise UsageError(f"{source} is {address!r}: it has to begin with http:// or https://")
        return address
    return None


def redact(text: str, key: str) -> str:
    """`text` without the key, for messages and replies that may echo it."""
    return text.replace(key, "[key]") if len(key) >= SHORTEST_SECRET else text
