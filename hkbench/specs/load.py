"""Read kernel specs, one file or a folder of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hkbench.errors import ConfigurationError, InputMissing
from hkbench.specs.expressions import check
from hkbench.specs.records import KernelSpec, Scalar
from hkbench.specs.write import LANGUAGES


def load_specs(path: Path) -> list[KernelSpec]:
    """Return the spec in a file, or those of all `*.json` of a folder, in the order of their names.

    Raises:
        InputMissing: there is no such file, or no spec in the folder.
        ConfigurationError: a spec is wrong; with the field, and what was expected.
    """
    if path.is_dir():
        files = sorted(path.glob("*.json"))
        if not files:
            raise InputMissing(f"{path}: holds no *.json; name a kernel spec, or a folder of them")
    else:
        files = [path]
    specs = [load_spec(file) for file in files]
    names = [spec.name for spec in specs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigurationError(f"{path}: two specs have the name {twice}; rename one")
    return specs


def load_spec(path: Path) -> KernelSpec:
    """Return the spec in a file, with its source.

    Raises:
        InputMissing: the file, or the source that it names, is not there.
        ConfigurationError: it is wrong; with the field, and what was expected.
    """
    told = read_json(path)
    try:
        spec = KernelSpec.model_validate(told)
    except ValidationError as error:
        raise ConfigurationError(f"{path}: {said(error)}") from error
    if spec.source_file is not None:
        spec = spec.model_copy(update={"source": text_of(path.parent / spec.source_file), "source_file": None})
    _check(path, spec)
    return spec


def read_json(path: Path) -> Any:
    """Return what a JSON file holds. Raises as `load_spec`."""
    try:
        return json.loads(text_of(path))
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"{path}: line {error.lineno}: not JSON: {error.msg}") from error


def text_of(path: Path) -> str:
    """Return the text of a file. Raises as `load_spec`."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputMissing(f"{path}: there is no such file; check the path") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read ({error}); name a text file in UTF-8") from error


def said(error: ValidationError) -> str:
    """Return the first complaint: which field, and what was expected."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("tensor", "scalar"))
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{place}: {first['msg']}{more}" if place else f"{first['msg'].removeprefix('Value error, ')}{more}"


def _check(path: Path, spec: KernelSpec) -> None:
    """Raise ConfigurationError for what no single field shows."""
    if spec.language not in LANGUAGES:
        raise ConfigurationError(f"{path}: language: {spec.language} is none of {', '.join(LANGUAGES)}")
    assert spec.source is not None
    if spec.entry not in spec.source:
        raise ConfigurationError(f"{path}: entry: the source does not define {spec.entry}")
    expressions: list[tuple[str, str | int]] = []
    for number, argument in enumerate(spec.arguments):
        place = f"arguments.{number}"
        if isinstance(argument, Scalar):
            if isinstance(argument.value, str):
                expressions.append((f"{place}.value", argument.value))
        else:
            expressions += [(f"{place}.shape", size) for size in argument.shape]
            expressions += [(f"{place}.strides", size) for size in argument.strides or ()]
    for where, expression in expressions:
        check_expression(path, where, expression, set(spec.shapes))
    launch = spec.launch
    of_launch = [("launch.grid", size) for size in launch.grid] + [("launch.block", size) for size in launch.block]
    of_launch.append(("launch.shared_bytes", launch.shared_bytes))
    for where, expression in of_launch:
        check_expression(path, where, expression, set(spec.shapes) | set(launch.constants))
    if spec.language != "cpp" and not launch.grid:
        raise ConfigurationError(f"{path}: launch.grid: a {spec.language} kernel needs one")
    if spec.language in ("cuda", "hip") and not launch.block:
        raise ConfigurationError(f"{path}: launch.block: a {spec.language} kernel needs the numbers of its threads")


def check_expression(path: Path, where: str, expression: str | int, names: set[str]) -> None:
    """Raise ConfigurationError for what is no expression over these names."""
    try:
        check(expression, names)
    except ValueError as error:
        raise ConfigurationError(f"{path}: {where}: {error}") from error
