"""One problem that a command names: a file in KernelBench's format as it is, or JSON, which becomes such a file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hkbench.errors import ConfigurationError, InputMissing, ProblemError
from hkbench.problems import load_problem
from hkbench.specs.described import described_problem


@contextmanager
def problem_file(path: Path) -> Iterator[Path]:
    """Yield the file of the problem; what JSON becomes is there as long as the block lasts.

    It lies in a folder of the same name as the JSON file does, which may say the level.

    Raises:
        InputMissing, ConfigurationError: the file is not there, or the JSON is wrong.
    """
    if not path.is_file():
        raise InputMissing(f"{path}: there is no such file; name a problem with --problem")
    if path.suffix.lower() != ".json":
        yield path
        return
    name, text = described_problem(path)
    with tempfile.TemporaryDirectory(prefix="hkbench-problem-") as folder:
        written = Path(folder, path.absolute().parent.name, name)
        written.parent.mkdir()
        written.write_text(text, encoding="utf-8")
        try:
            load_problem(written)
        except ProblemError as error:
            raise ConfigurationError(f"{path}: reference: {str(error).removeprefix(f'{written}: ')}") from error
        yield written
