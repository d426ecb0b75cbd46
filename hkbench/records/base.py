"""What all records share: frozen, strict about unknown fields, no behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StringConstraints,
)
from pydantic_core import CoreSchema, core_schema


class Record(BaseModel):
    """An immutable value. Unknown fields are refused; a missing figure is `None`, never 0."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=True, ser_json_inf_nan="strings")


#: The name of the language a candidate's kernels are written in; hkbench/registry.py has those that are known here.
BackendName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]


#: Installed packages name kinds of devices as entry points of this group; the value is the place of a `DeviceModel`.
DEVICE_KIND_GROUP = "hkbench.device_kinds"


class DeviceKind(str):
    """The kind of machine that measures; records hold its name. `register` adds one (hkbench/device_kinds)."""

    ROCM: ClassVar[DeviceKind]
    CUDA: ClassVar[DeviceKind]
    CPU: ClassVar[DeviceKind]
    EMULATED_GFX942: ClassVar[DeviceKind]
    EMULATED_GFX950: ClassVar[DeviceKind]
    _known: ClassVar[dict[str, DeviceKind]] = {}

    def __new__(cls, name: str) -> DeviceKind:
        """Return the one instance of a kind, which `is` compares. Raise ValueError for an unknown name."""
        if name not in cls._known:
            cls._register_installed()
        if name not in cls._known:
            raise ValueError(f"{name!r} is not a kind of device; known are {', '.join(cls._known)}")
        return cls._known[name]

    @classmethod
    def register(cls, name: str) -> DeviceKind:
        """Make a name known, and return its kind."""
        return cls._known.setdefault(name, str.__new__(cls, name))

    @classmethod
    def known(cls) -> tuple[DeviceKind, ...]:
        """Return all kinds: the shipped ones first, then those of installed packages."""
        cls._register_installed()
        return tuple(cls._known.values())

    @classmethod
    def _register_installed(cls) -> None:
        for point in installed_device_kinds():
            cls.register(point.name)

    @property
    def value(self) -> str:
        """The name."""
        return str(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        text, plain = core_schema.str_schema(), core_schema.to_string_ser_schema()
        return core_schema.no_info_after_validator_function(cls, text, serialization=plain)

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "enum": [kind.value for kind in cls.known()]}


@cache
def installed_device_kinds() -> tuple[metadata.EntryPoint, ...]:
    """Return the entry points of installed packages' kinds, in the order of their names. Nothing is imported."""
    return tuple(sorted(metadata.entry_points(group=DEVICE_KIND_GROUP), key=lambda point: point.name))


DeviceKind.ROCM = DeviceKind.register("rocm")
DeviceKind.CUDA = DeviceKind.register("cuda")
DeviceKind.CPU = DeviceKind.register("cpu")
DeviceKind.EMULATED_GFX942 = DeviceKind.register("emulated:gfx942")
DeviceKind.EMULATED_GFX950 = DeviceKind.register("emulated:gfx950")


def _one_component(name: str) -> str:
    """Refuse a name that would lead out of the folder in which it names another one."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError(f"{name[:80]!r} is not the name of a folder: write it without `/`, as in 4_RMSNorm")
    return name


#: The name of a folder in another one: a single component of a path.
FolderName = Annotated[str, AfterValidator(_one_component)]


@dataclass(frozen=True)
class Flag:
    """Complete a field that is an option of a command: metadata of its annotation, see hkbench/cli/fields.py."""

    metavar: str | None = None
    name: str | None = None  #: `None`: the field's, as `--field-name`; empty: the field is no option
    unit: str | None = None  #: completes "must be a positive ..." in the error of a number
