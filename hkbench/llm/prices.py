"""The price file: what a model's tokens cost, as its user says. hkbench itself knows no prices."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from pydantic import ValidationError

from hkbench.errors import ConfigurationError, InputMissing
from hkbench.records import Price, Rates, Record

VARIABLE = "HKBENCH_PRICES"
DEFAULT = Path("prices.toml")  #: in the working folder


class PriceFile(Record):
    """Its content. A model is named as it is asked for, or by its beginning and a star."""

    currency: str
    models: dict[str, Rates] = {}

    def entry_for(self, model: str) -> str | None:
        """Return the entry of that very name, else the longest beginning; `None`: there is no price."""
        if model in self.models:
            return model
        fitting = [name for name in self.models if name.endswith("*") and model.startswith(name[:-1])]
        return max(fitting, key=len, default=None)


def find_price(option: Path | None, model: str) -> Price | None:
    """Return the price of `model` by `option` (--prices), else $HKBENCH_PRICES, else prices.toml; `None`: none says.

    Raises:
        InputMissing: the file that was named does not exist.
        ConfigurationError: the file is not a price file.
    """
    named = os.environ.get(VARIABLE, "").strip()
    path = option or (Path(named) if named else None) or (DEFAULT if DEFAULT.is_file() else None)
    if path is None:
        return None
    prices = read_prices(path)
    entry = prices.entry_for(model)
    if entry is None:
        return None
    return Price(currency=prices.currency, entry=entry, rates=prices.models[entry], source=str(path))


def read_prices(path: Path) -> PriceFile:
    """Return the whole file. Raises as `find_price`."""
    try:
        with path.open("rb") as file:
            return PriceFile.model_validate(tomllib.load(file))
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise InputMissing(f"{path}: there is no such price file; examples/prices.toml is one to start from") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not TOML: {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigurationError(f"{path}: {where}: {first['msg']}; see examples/prices.toml") from None
