"""What lowers the precision is named in the verdict: by the setter, by the file that was built, by the text."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from integration.test_evaluator_trust import SETTINGS, Bench, own

from hkbench.engine.evaluator import LocalEvaluator
from hkbench.records import DeviceKind, Status, Track

pytestmark = [pytest.mark.alone, pytest.mark.asyncio(loop_scope="module")]

#: Set within the call and put back, and named in the library as an import of it would be.
PUT_BACK = """
before = torch.get_float32_matmul_precision()
torch.set_float32_matmul_precision("medium")
y = scale(x, self.gain, self.bias)
torch.set_float32_matmul_precision(before)
return y
"""
IMPORTED = 'extern "C" const char* set_to() { return "_ZN2at7Context18setAllowTF32CuBLASEb"; }'


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def bench() -> AsyncIterator[Bench]:
    async with LocalEvaluator(DeviceKind.CPU, SETTINGS.model_copy(update={"track": Track.ANY})) as evaluator:
        yield Bench(evaluator)


async def test_a_setting_that_is_put_back_is_named_by_each_witness(bench: Bench, tmp_path: Path) -> None:
    source = own(PUT_BACK).replace('extern "C" void scale', IMPORTED + '\nextern "C" void scale', 1)
    verdict = await bench.judge(source, tmp_path)
    assert verdict.status in (Status.FAST, Status.SLOW), verdict.failure
    found = {one.seen: one for one in verdict.precision}
    assert set(found) == {"setter", "built file", "source"}
    setting = 'torch.set_float32_matmul_precision("medium")'
    text = next(text for path in tmp_path.rglob("*.py") if setting in (text := path.read_text()))
    line = text[: text.index(setting)].count("\n") + 1
    assert (found["setter"].flag, found["setter"].value) == ("torch.set_float32_matmul_precision", "medium")
    assert found["setter"].where == f"line {line}"
    assert (found["built file"].flag, found["built file"].where) == ("setAllowTF32CuBLAS", "scale.so")


async def test_who_sets_nothing_is_named_by_none(bench: Bench, tmp_path: Path) -> None:
    verdict = await bench.judge(own("return scale(x, self.gain, self.bias)"), tmp_path)
    assert verdict.precision == ()
