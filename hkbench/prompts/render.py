"""From a template and what is known to the text that is sent."""

from __future__ import annotations

import hashlib

import jinja2

from hkbench.backends import Backend, find_backend
from hkbench.errors import ConfigurationError
from hkbench.prompts.config import USER_MESSAGE, PromptBook
from hkbench.prompts.context import PromptContext
from hkbench.prompts.text import clean
from hkbench.records import Prompt

# What a template's own expressions can raise: a wrong type, a missing key, a division by zero.
_TEMPLATE_FAULTS = (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError)


def render(book: PromptBook, name: str, context: PromptContext) -> Prompt:
    """Render the prompt file `name` of `book`: a template, or a plain text with the user message that follows it.

    Raises ConfigurationError, naming template and variable, when a template asks for what is not there, and
    when the backend has dialects and none for the device.
    """
    _check_dialect(find_backend(context.backend), context)
    plain = book.plain.get(name)
    text = _rendered(book, name if plain is None else USER_MESSAGE, context)
    system = [] if plain is None else [clean(plain).strip()]
    first = book.system_prompt(context.backend)
    if first is not None and context.question is None:  # a judge's template gives it a role of its own
        system.insert(0, clean(book.plain[first]).strip() if first in book.plain else _rendered(book, first, context))
    said = "\n\n".join(part.strip() for part in system) + "\n" if system else None
    digest = hashlib.sha256(((said or "") + text).encode()).hexdigest()
    return Prompt(text=text, system=said, template=name, sha256=digest)


def _check_dialect(backend: Backend, context: PromptContext) -> None:
    if not backend.dialects or context.dialect is not None:
        return
    device = context.device
    known = " and ".join(f"{arch} ({dialect})" for arch, dialect in backend.dialects.items())
    more = ", ".join(arch for arch in backend.compiles_for if arch not in backend.dialects)
    compiled = f". eval.py --build-only compiles candidates for {more} too" if more else ""
    raise ConfigurationError(
        f"the prompts have no {backend.title} card for {device.name} (architecture {device.arch or 'unknown'}), only "
        f"for {known}: choose such a device, or another --backend{compiled}"
    )


def _rendered(book: PromptBook, template: str, context: PromptContext) -> str:
    # The fields themselves, not a dump: a mistyped attribute of a record is then an error.
    values = {name: getattr(context, name) for name in PromptContext.model_fields}
    backend = find_backend(context.backend)
    values["programming_model"] = backend.programming_model
    try:
        text = book.environment(backend).get_template(template).render(values)
    except jinja2.TemplateNotFound as error:
        raise ConfigurationError(
            f"{book.folder} has no template {error.name!r}; name it in {book.folder}/config.json"
        ) from error
    except jinja2.UndefinedError as error:
        raise ConfigurationError(
            f"{book.folder}: rendering {template!r}: {error.message}; correct the name in the template"
        ) from error
    except _TEMPLATE_FAULTS as error:
        raise ConfigurationError(f"{book.folder}: rendering {template!r}: {error}; fix it") from error
    return text.strip() + "\n"
