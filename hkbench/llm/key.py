"""Where the key and the address of the model service come from."""

from __future__ import annotations

import os

from hkbench.errors import UsageError

GATEWAY_KEY, OPENAI_KEY = "LLM_GATEWAY_KEY", "OPENAI_API_KEY"
KEY_VARIABLES = (GATEWAY_KEY, OPENAI_KEY)
ADDRESS_VARIABLES = ("LLM_GATEWAY_URL", "OPENAI_BASE_URL")
OPENAI_ADDRESS = "https://api.openai.com/v1"  #: of the library that calls services, where none is named
ADDRESS_ADVICE = "LLM_GATEWAY_URL (or --base-url, or base_url in hkbench.toml)"  #: where an address is put
MIN_SECRET_LENGTH = 8  #: shorter keys ("EMPTY", "none") are placeholders of local servers


def api_key(address: str | None) -> str:
    """Return the key for the service at `address` (None: OpenAI's own).

    Raises:
        UsageError: no variable holds a key, or it is a gateway's and no address says which one.
    """
    found = known_key()
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


def known_key() -> str | None:
    """Return the key, where a variable holds one."""
    return next((value for value in map(_variable, KEY_VARIABLES) if value), None)


def base_url(option: str | None, configured: str | None = None) -> str | None:
    """Return the service's address: `option` (--base-url), LLM_GATEWAY_URL, OPENAI_BASE_URL or `configured`.

    None where nobody names one. Raises UsageError when the address is not an http(s) one.
    """
    variables = ((name, _variable(name)) for name in ADDRESS_VARIABLES)
    for source, value in (("--base-url", option), *variables, ("base_url in hkbench.toml", configured)):
        address = (value or "").strip()
        if not address:
            continue
        if not address.startswith(("http://", "https://")):
            raise UsageError(f"{source} is {address!r}: it has to begin with http:// or https://")
        return address
    return None


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip()


def redact(text: str, key: str) -> str:
    """Return `text` without the key, for messages and replies that may echo it."""
    return text.replace(key, "[key]") if len(key) >= MIN_SECRET_LENGTH else text
