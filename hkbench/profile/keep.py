"""Keep what a profiler wrote and printed, for users who want to look at it afterwards."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from hkbench.errors import InputMissing, UsageError
from hkbench.profile.choose import Plan, Step
from hkbench.profile.tables import ProfileUnreadable, read_text
from hkbench.sandbox import folders
from hkbench.store.files import write_atomic


@dataclass(frozen=True)
class Kept:
    """A folder for one candidate."""

    folder: Path

    @classmethod
    def of(cls, parent: str | None, problem: str, code: bytes) -> Kept | None:
        """Return a folder below `parent`, by the problem and the candidate's hash; None where nothing is to be kept.

        Raises:
            UsageError: it cannot be made.
        """
        if parent is None:
            return None
        folder = Path(parent, f"{problem}-{sha256(code).hexdigest()[:12]}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{folder}: cannot be made ({error.strerror}); name another --keep-profile") from error
        return cls(folder)

    def step(self, step: Step, returncode: int | None, seconds: float, output: str) -> None:
        """Keep how a step was run and ended; `returncode` None: it did not end in time."""
        said = {
            "command": step.command,
            "environment": dict(step.environment),
            "returncode": returncode,
            "seconds": round(seconds, 3),
            "output": output,
        }
        write_atomic(self.folder / f"{step.name}.json", json.dumps(said, indent=2) + "\n")

    def files(self, planned: Plan) -> None:
        """Keep the files of the steps as text; links are not followed, and what is too large is left out."""
        for pattern in (pattern for step in planned.steps for pattern in step.expected):
            for path in folders.matching(planned.folder, pattern):
                try:
                    name = "_".join(path.relative_to(planned.folder).parts)
                    write_atomic(self.folder / name, read_text(path))
                except (InputMissing, ProfileUnreadable):
                    continue
