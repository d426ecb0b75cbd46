"""What a command's options are where the command line does not say: the environment, then the file hkbench.toml."""

from __future__ import annotations

import argparse
import os
import tomllib
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from hkbench.errors import ConfigurationError
from hkbench.llm.key import base_url
from hkbench.llm.prices import VARIABLE as PRICES_VARIABLE
from hkbench.records import DeviceKind, Record
from hkbench.registry import KnownBackend

FILE = Path("hkbench.toml")  #: in the working folder
MODEL_VARIABLE = "LLM_MODEL"


class Configuration(Record):
    """The content of hkbench.toml. A key of a service has no place in it: it comes from the environment only."""

    model: str | None = None
    base_url: str | None = None
    judge_model: str | None = None
    prices: Path | None = None  #: relative to the file
    samples: int | None = Field(default=None, ge=1)
    attempts: int | None = Field(default=None, ge=1)
    device: Literal["auto"] | DeviceKind | None = None
    backend: KnownBackend | None = None


def read_configuration() -> Configuration:
    """Read the file; an empty configuration where there is none.

    Raises:
        ConfigurationError: it is not TOML, or hold an unknown key or a value of the wrong kind.
    """
    try:
        with FILE.open("rb") as file:
            return Configuration.model_validate(tomllib.load(file))
    except FileNotFoundError:
        return Configuration()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, IsADirectoryError) as error:
        raise ConfigurationError(f"{FILE} is not TOML: {error}; fix it") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        known = ", ".join(Configuration.model_fields)
        if first["type"] != "extra_forbidden":
            raise ConfigurationError(f"{FILE}: {where}: {first['msg']}; fix it") from None
        secret = "; keys of services are set in the environment only" if "key" in where.lower() else ""
        raise ConfigurationError(f"{FILE}: {where} is unknown; it may have {known}{secret}") from None


def configure(options: argparse.Namespace) -> None:
    """Fill the options that were not given: from the environment, else from hkbench.toml.

    To be called after the options were checked against each other: what the file says contradicts no option, it is
    passed over where an option settles the same thing in another way.

    Raises:
        ConfigurationError: the file cannot be used.
        UsageError: an address does not begin with http:// or https://.
    """
    file = read_configuration()
    replay = getattr(options, "replay", None) is not None
    if not replay:  # recorded replies are nobody's model, and have no address
        _fill(options, "model", os.environ.get(MODEL_VARIABLE, "").strip() or file.model)
        _fill(options, "judge_model", file.judge_model)
        if hasattr(options, "base_url"):
            options.base_url = base_url(options.base_url, file.base_url)
        if not os.environ.get("NUM_SAMPLES", "").strip():
            _fill(options, "samples", file.samples)
    if getattr(options, "rounds", None) is None:
        _fill(options, "attempts", file.attempts)
    if not os.environ.get(PRICES_VARIABLE, "").strip():
        _fill(options, "prices", file.prices)
    if not getattr(options, "build_only", False):
        _fill(options, "device", file.device)
        _fill(options, "backend", file.backend)


def _fill(options: argparse.Namespace, name: str, value: object) -> None:
    if hasattr(options, name) and getattr(options, name) is None:
        setattr(options, name, value)
