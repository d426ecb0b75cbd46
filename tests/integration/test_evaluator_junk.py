"""Whatever the runner says and leaves in its folder, the real judge reaches a verdict on it."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from support import junk
from support.processes import left_behind
from support.small_problems import AFFINE, LINEAR, candidate_file, problem_file

from hkbench.engine.evaluator import LocalEvaluator
from hkbench.records import DeviceKind, EvaluationSettings, FailureKind, Track, Verdict

pytestmark = pytest.mark.asyncio(loop_scope="module")

SETTINGS = EvaluationSettings(
    busy_wait=0.0,
    shapes=0,
    track=Track.ANY,
    trials=2,
    timing_runs=5,
    timing_seconds=3.0,
    warmups=1,
    load_timeout=10.0,
    run_timeout=3.0,
    memory_gib=1.5,
    evaluation_timeout=20.0,
)

#: Below the source of tests/support/junk.py: every message may be anything, and so may the private folder.
CANDIDATE = """

JUNK = Junk({seed})
wire = sys.modules["hkbench.protocol.wire"]
send = wire.send


def said(sock, message, *rest):
    if {share} > JUNK._random.random():
        if {whole}:
            message = JUNK.like(message)
        elif "ok" in message:
            message = {{**JUNK.like({{**message, "ok": 0}}), "ok": message["ok"]}}
    try:
        body = json.dumps(message).encode()
    except (RecursionError, ValueError):
        body = b"{{}}"
    if {whole} and {share} > 5 * JUNK._random.random():
        body = JUNK.text(body)
    sock.sendall(wire.HEADER.pack(wire.MAGIC, len(body)) + body)


wire.send = said

for name in (b"odd\\xff.so", b"odd\\n\\x1b.py", b"n" * 240 + b".cubin", b"kernel.ttir"):
    with open(name, "wb") as file:
        file.write(JUNK.text(b"_Z4oddv __global__ tt.func public @odd() }} loc(#l)\\n#l = loc(\\"x\\":1:2)"))
os.symlink("/dev/zero", "zeros.so")
os.symlink(".", "loop")
os.makedirs("/".join("d" * 40))


class ModelNew(nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        self.linear = nn.Linear(*sizes) if sizes else None

    def forward(self, x):
        return 2.0 * x + 1.0 if self.linear is None else self.linear(x)
"""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def evaluator() -> AsyncIterator[LocalEvaluator]:
    async with LocalEvaluator(DeviceKind.CPU, SETTINGS) as one:
        yield one
    assert left_behind() == {}


#: How many messages are spoiled, and whether whole frames are or only what stands in answers.
SPOILED = [(0.02, True), (0.2, True), (0.03, False), (0.3, False)]


@pytest.mark.parametrize(("share", "whole"), SPOILED)
@pytest.mark.parametrize("seed", range(4))
async def test_a_runner_that_babbles(
    seed: int, share: float, whole: bool, evaluator: LocalEvaluator, tmp_path: Path
) -> None:
    problem = problem_file(tmp_path / "problems", AFFINE if seed % 2 else LINEAR)
    source = inspect.getsource(junk).replace("from __future__ import annotations\n", "")
    source += CANDIDATE.format(seed=seed, share=share, whole=whole)
    result = await evaluator.evaluate(problem, candidate_file(tmp_path, source), tmp_path / "build", "cpp")
    assert result.verdict is not None
    failure = result.verdict.failure
    assert failure is None or failure.kind is not FailureKind.LOAD_ERROR, "the candidate itself is sound"
    assert Verdict.model_validate_json(result.verdict.model_dump_json()) == result.verdict
    assert not (tmp_path / "build").exists()
