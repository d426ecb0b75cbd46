"""Putting runs into an experience, and proving that what it holds is what their folders say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hkbench.experience.database import Added, Database
from hkbench.experience.extract import extract
from hkbench.experience.facts import Traits
from hkbench.records import Record
from hkbench.store.layout import RunPaths

KnownTraits = Mapping[str, Traits | None]  #: by problem, what it is compared by; `None`: that is not known


class Check(Record):
    """What a rebuild of an experience from run folders came to; names of folders, and ids where no folder was named."""

    same: tuple[str, ...]
    differ: tuple[str, ...]  #: the file holds something else of them
    missing: tuple[str, ...]  #: the file does not hold them
    unnamed: tuple[str, ...]  #: the file holds them, and no folder was named

    @property
    def proved(self) -> bool:
        """Tell whether the file holds these runs, whole, and nothing else."""
        return not (self.differ or self.missing or self.unnamed)


def add_run(database: Database, run: Path, traits: KnownTraits) -> Added:
    """Put the run of a folder in, in place of what is known of it; errors as of `extract` and `Database`."""
    return database.add(extract(RunPaths(run), traits))


def check(database: Database, runs: Sequence[tuple[Path, KnownTraits]]) -> Check:
    """Build an experience of these runs anew, beside the file, and compare the two row by row."""
    names: dict[str, str] = {}
    with TemporaryDirectory() as folder, Database(Path(folder) / "rebuilt.db", create=True) as rebuilt:
        for path, traits in runs:
            rows = extract(RunPaths(path), traits)
            rebuilt.add(rows)
            names[rows.run.id] = str(path)
        held = set(database.run_ids())
        same = {one for one in names if one in held and database.content(one) == rebuilt.content(one)}
    return Check(
        same=tuple(names[one] for one in names if one in same),
        differ=tuple(names[one] for one in names if one in held - same),
        missing=tuple(names[one] for one in names if one not in held),
        unnamed=tuple(sorted(held - names.keys())),
    )
