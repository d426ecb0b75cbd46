"""The jinja2 environment that prompts are checked and rendered in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import jinja2
import jinja2.meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from hkbench.errors import ConfigurationError
from hkbench.prompts import figures, products, tiles
from hkbench.prompts.context import PromptContext
from hkbench.prompts.text import ending, fenced

#: Names a template may use besides the functions of `environment`.
VARIABLES = frozenset({*PromptContext.model_fields, "programming_model"})


def environment(templates: Mapping[str, str]) -> jinja2.Environment:
    """Return a sandboxed environment over `templates`; an undefined name is an error."""
    # Nothing is escaped: prompts are plain text, and no browser ever shows them as HTML.
    made = ImmutableSandboxedEnvironment(
        loader=jinja2.DictLoader(templates),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {
        "fenced": fenced,
        "ending": ending,
        "describe": figures.describe,
        "describe_plan": tiles.describe_plan,
    }
    made.globals |= {
        "tensors": figures.tensors,
        "traffic_bytes": figures.traffic_bytes,
        "least_ms": figures.least_ms,
        "dtypes": figures.dtypes,
        "tile_table": tiles.tile_table,
        "row_plans": tiles.row_plans,
        "product_form": products.product_form,
        "reads_rows_of_b": products.reads_rows_of_b,
    }
    return made


#: What the first line of a template begins with, where the file's name does not end in one of TEMPLATE_SUFFIXES.
_FRONT = ("{%", "{#")
TEMPLATE_SUFFIXES = frozenset({".jinja", ".j2"})
_TEMPLATE_INSIDE = re.compile(
    r"\{%-?\s*(include|extends)\b|\{\{-?\s*(" + "|".join(sorted(VARIABLES)) + r")(\.\w+)*\s*(\|[^{}]*)?-?\}\}"
)


def is_template(path: Path, text: str) -> bool:
    """Return whether a prompt file is a jinja2 template: by its suffix, or by a tag on its first line.

    Any other file is a plain text, sent as it stands.

    Raises:
        ConfigurationError: the file is empty; or it is no template by these signs, but holds an include or a variable
            of ours, and would be sent with these unfilled.
    """
    if path.suffix in TEMPLATE_SUFFIXES or text.lstrip().startswith(_FRONT):
        return True
    if not text.strip():
        raise ConfigurationError(f"{path} is empty: write the prompt into it")
    if found := _TEMPLATE_INSIDE.search(text):
        raise ConfigurationError(
            f"{path} holds {found[0]!r}, but is read as a plain text, since its first line is not a jinja2 tag or "
            "comment: put the line {# template #} before it, or name the file .jinja"
        )
    return False


def check_template(path: Path, text: str) -> list[str]:
    """Parse a template and return the names of the templates it refers to.

    Raises ConfigurationError for a syntax error, an unknown filter, an unknown variable, or a reference whose
    name is not a constant (it could not be checked before the run).
    """
    made = environment({})
    try:
        tree = made.parse(text)
        used = jinja2.meta.find_undeclared_variables(tree)
    except jinja2.TemplateSyntaxError as error:
        raise ConfigurationError(
            f"{path}, line {error.lineno}: not a valid jinja2 template: {(error.message or '').rstrip('.')}; fix it"
        ) from error
    unknown = sorted(used - VARIABLES - set(made.globals))
    if unknown:
        known = ", ".join(sorted(VARIABLES))
        raise ConfigurationError(f"{path}: unknown variable {unknown[0]!r}; a template can use: {known}")
    referred = list(jinja2.meta.find_referenced_templates(tree))
    if None in referred:
        raise ConfigurationError(f"{path}: include and extends need a constant name; choose by if")
    return [name for name in referred if name is not None]
