"""Recorded replies, by the calls that they answer: from a run folder, or from one file that people can read.

The file is TOML. Its tables have the names that the folders of a run have, below the backend; a field that stands
before the first table holds for each reply that does not have it itself::

    model = "hand-written example"
    finish_reason = "stop"

    [cpp.4_RMSNorm_fp32.attempt_1.sample_1]
    text = '''
    The sum is taken over each row ...
    '''

The fields are those of `records.Reply`. In place of `text`, `like` names a call of the same backend whose fields are
taken, in this file or in one beside it::

    [cpp.4_RMSNorm_fp32.attempt_3.sample_1]
    like = "4_RMSNorm_fp32/attempt_2/sample_1"

    [cpp.4_RMSNorm_fp32.attempt_4.sample_1]
    like = "others.toml#4_RMSNorm_fp32/attempt_1/sample_1"
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import StringConstraints, TypeAdapter, ValidationError

from hkbench.errors import ReplayMissing
from hkbench.records import BackendName, CallKey, Reply, Role

_Attempt = Annotated[str, StringConstraints(pattern=r"^attempt_[1-9]\d*$")]
_READERS = tuple(role.value for role in Role if role is not Role.CODER)
_Call = Annotated[str, StringConstraints(pattern=rf"^({'|'.join(('sample', *_READERS))})_[1-9]\d*$")]
_FILE = TypeAdapter(dict[str, dict[_Attempt, dict[_Call, dict[str, Any]]]])
_LITERAL = re.compile(r"(?!.*''')[\t\n\x20-\x7e\x80-\U0010ffff]*(?<!')", re.DOTALL)  #: what ''' holds as it stands
_ESCAPED = re.compile(r'[\\"\x00-\x08\x0b-\x1f\x7f]')
_BARE = re.compile(r"[\w-]+", re.ASCII)


def call_name(key: CallKey) -> str:
    """Return the folder of a call below the run folder, as `PROBLEM/attempt_K/sample_N`."""
    return f"{key.problem}/attempt_{key.attempt}/{key.folder}"


def replies_in_file(path: Path, backend: BackendName) -> dict[str, Reply]:
    """Read the replies for one backend, by `call_name`. Raises ReplayMissing when the file is not what it should be."""
    files: dict[str, dict[str, dict[str, Any]]] = {}
    try:
        files[""] = _calls(path, backend)
        others = {_place(str(fields["like"]))[0] for fields in files[""].values() if "like" in fields} - {""}
        files |= {other: _calls(path.parent / other, backend) for other in others}
        return {name: Reply.model_validate(_resolved(name, fields, files)) for name, fields in files[""].items()}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValidationError, KeyError) as error:
        raise ReplayMissing(f"{path} is not a file of recorded replies ({error}): fix it") from error


def _calls(path: Path, backend: BackendName) -> dict[str, dict[str, Any]]:
    """Read the fields of each call of a file, by `call_name`."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    common = {name: tables.pop(name) for name in list(tables) if not isinstance(tables[name], dict)}
    return {
        f"{problem}/{attempt}/{call}": {"model": "recorded", **common, **fields}
        for problem, attempts in _FILE.validate_python(tables.get(backend, {})).items()
        for attempt, calls in attempts.items()
        for call, fields in calls.items()
    }


def _resolved(
    name: str, fields: Mapping[str, Any], files: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> Mapping[str, Any]:
    """Return the fields of a call, or those of the call that it is like.

    Raises:
        KeyError: there is no such call, or that one is like another.
    """
    if "like" not in fields:
        return fields
    file, call = _place(str(fields["like"]))
    if "like" in (found := files[file].get(call, fields)):
        raise KeyError(f"{name} is like {fields['like']}, where no text is")
    return found


def _place(like: str) -> tuple[str, str]:
    """Return the file, empty for the same one, and the call that a `like` names."""
    file, mark, call = like.rpartition("#")
    return (file, call) if mark else ("", like)


def replies_in_folder(root: Path) -> dict[str, Path]:
    """Find the texts of the replies that a run folder holds, by `call_name`, in the order of their numbers."""
    found = [path for kind in (*_READERS, "sample") for path in root.glob(f"*/attempt_*/{kind}_*/response.txt")]
    names = {path.parent.relative_to(root).as_posix(): path for path in found}
    return {name: names[name] for name in sorted(names, key=_by_number)}


def read_reply(path: Path) -> Reply:
    """Read a reply of a run folder from `response.txt`, and from `exchange.json` beside it where there is one.

    Raises ReplayMissing when one of them cannot be read.
    """
    exchange = path.with_name("exchange.json")
    try:
        text = path.read_bytes().decode("utf-8")
        recorded = json.loads(exchange.read_bytes()) if exchange.is_file() else {}
        if not isinstance(recorded, dict):
            raise TypeError("it is not an object")
        fields = {name: value for name, value in recorded.items() if name not in {"request", "text"}}
        return Reply.model_validate({"model": "recorded", **fields, "text": text})
    except UnicodeDecodeError as error:
        raise ReplayMissing(f"the reply {path} is not UTF-8 text ({error}): record it again") from error
    except (json.JSONDecodeError, TypeError, ValidationError) as error:
        raise ReplayMissing(
            f"{exchange} is not the record of a reply ({error}): fix it, or delete it to use the text alone"
        ) from error


def replies_file(collections: Mapping[str, Mapping[str, Reply]]) -> str:
    """Write replies, by the backend's name and `call_name`, as the text of a file that `replies_in_file` reads."""
    replies = [reply for calls in collections.values() for reply in calls.values()]
    common = {
        name: Counter(getattr(reply, name) for reply in replies).most_common(1)[0][0]
        for name in ("model", "finish_reason")
        if replies and all(getattr(reply, name) is not None for reply in replies)
    }
    lines = [f"{name} = {_basic(value)}\n" for name, value in common.items()]
    for backend, calls in collections.items():
        for name, reply in calls.items():
            table = ".".join(part if _BARE.fullmatch(part) else _basic(part) for part in (backend, *name.split("/")))
            fields = reply.model_dump(mode="json", exclude_defaults=True, exclude={"text", "replayed"})
            usage = fields.pop("usage", {})
            given = {field: value for field, value in fields.items() if common.get(field) != value}
            given |= {f"usage.{field}": value for field, value in usage.items()}
            values = "".join(f"{f} = {_basic(v) if isinstance(v, str) else v}\n" for f, v in given.items())
            lines.append(f"\n[{table}]\n{values}text = {_multiline(reply.text)}\n")
    return "".join(lines)


def _by_number(name: str) -> list[str | int]:
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _multiline(text: str) -> str:
    return f"'''\n{text}'''" if _LITERAL.fullmatch(text) else f'"""\n{_escaped(text)}"""'


def _basic(text: str) -> str:
    return '"' + _escaped(text).replace("\n", "\\n") + '"'


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"\\{found[0]}" if found[0] in '\\"' else f"\\u{ord(found[0]):04x}", text)
