"""scripts/record_replies.py as a user runs it: the replies of a run go into a file, and come back in their order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support import doors
from support.run_folder import RunFolder, run_config

from hkbench.errors import InputMissing, UsageError
from hkbench.llm.replay import ReplayClient
from hkbench.llm.replies import call_name
from hkbench.records import Reply, SampleKey, Usage


def record(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(doors.ROOT / "scripts" / "record_replies.py"), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


async def test_a_run_becomes_a_file_that_replay_serves(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run", run_config())
    keys = [SampleKey(problem="1_ReLU", attempt=1, sample=sample) for sample in (1, 2, 10)]
    for key in keys:
        reply = Reply(text=f"'''\n{key.sample}\\\n", model="m-1", usage=Usage(input=key.sample, output=2), seconds=0.5)
        run.store_exchange(key, reply)
        folder = run.paths.root / call_name(key)
        (folder / "response.txt").write_text(reply.text)
    file = tmp_path / "replies.toml"
    done = record(file, run.paths.root)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    served, first = ReplayClient(file, "cpp"), ReplayClient(run.paths.root, "cpp")
    for key in keys:
        assert await served.complete(key, "") == await first.complete(key, "")
    assert file.read_text().index("sample_2]") < file.read_text().index("sample_10]")


def test_what_is_no_run_and_a_second_run_of_a_backend_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "replies.toml"
    done = record(file, tmp_path)
    assert done.returncode == InputMissing.exit_code
    assert str(tmp_path) in done.stderr
    runs = [RunFolder(tmp_path / name, run_config()) for name in ("a", "b")]
    assert record(file, *(run.paths.root for run in runs)).returncode == UsageError.exit_code
    assert not file.exists()
