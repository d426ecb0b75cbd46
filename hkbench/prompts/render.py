"""From a template and what is known to the text that is sent."""

from __future__ import annotations

import hashlib
from pathlib import Path

import jinja2

from hkbench.errors import ConfigurationError, InputMissing
from hkbench.prompts.config import PromptBook
from hkbench.prompts.context import PromptContext
from hkbench.prompts.environment import check_template, environment
from hkbench.records import Backend, Prompt

# What a template's own expressions can raise: a wrong type, a missing key, a division by zero.
_TEMPLATE_FAULTS = (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError)


def render(book: PromptBook, template: str, context: PromptContext) -> Prompt:
    """Renders `template` of `book`.

    Raises ConfigurationError, naming template and variable, when the template asks for what is not there, and
    when the backend is HipKittens and the device has no dialect of it.
    """
    return _rendered(book, book.environment, template, context)


def render_file(book: PromptBook, path: Path, context: PromptContext) -> Prompt:
    """Renders a template file of the user's, which may include the book's partials.

    Raises InputMissing when there is no such file, ConfigurationError as `render` does.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputMissing(f"{path} cannot be read: {error}; name a UTF-8 text file") from error
    for name in check_template(path, text):
        if name not in book.templates:
            raise ConfigurationError(f"{path}: {book.folder} has no template {name!r}; correct the name")
    return _rendered(book, environment(book.templates | {str(path): text}), str(path), context)


def _rendered(book: PromptBook, where: jinja2.Environment, template: str, context: PromptContext) -> Prompt:
    if context.backend is Backend.HIPKITTENS and context.dialect is None:
        raise ConfigurationError(
            f"HipKittens has no dialect for {context.device.name} (architecture "
            f"{context.device.arch or 'unknown'}); it needs gfx942 or gfx950: choose such a device, "
            "or another --backend"
        )
    # The fields themselves, not a dump: a mistyped attribute of a record is then an error.
    values = {name: getattr(context, name) for name in PromptContext.model_fields}
    try:
        text = where.get_template(template).render(values)
    except jinja2.TemplateNotFound as error:
        raise ConfigurationError(
            f"{book.folder} has no template {error.name!r}; name it in {book.folder}/config.json"
        ) from error
    except jinja2.UndefinedError as error:
        raise ConfigurationError(
            f"{book.folder}: rendering {template!r}: {error.message}; correct the name in the template"
        ) from error
    except _TEMPLATE_FAULTS as error:
        raise ConfigurationError(f"{book.folder}: rendering {template!r}: {error}; mend it") from error
    text = text.strip() + "\n"
    return Prompt(text=text, template=template, sha256=hashlib.sha256(text.encode()).hexdigest())
