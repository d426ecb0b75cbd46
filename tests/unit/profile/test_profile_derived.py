"""Formulas, with numbers worked out by hand."""

from __future__ import annotations

import math

import pytest
from profile_samples import H100, MI300X

from hkbench.profile import derived
from hkbench.profile.derived import Agent
from hkbench.records import metrics

AGENT = Agent(compute_units=304, xcds=8)


def test_bytes_are_in_units_of_1024() -> None:
    assert derived.amd_bytes({"FETCH_SIZE": 3.0, "WRITE_SIZE": 1.0}) == 4096.0
    assert derived.amd_bytes({"FETCH_SIZE": 3.0}) is None


def test_operations_of_vector_and_matrix_units() -> None:
    counters = {
        f"SQ_INSTS_VALU_{kind}_{dtype}": 0.0
        for kind in ("ADD", "MUL", "FMA", "TRANS")
        for dtype in ("F16", "F32", "F64")
    }
    assert derived.amd_operations(counters) is None  # no matrix counter: the total is not known
    counters |= {"SQ_INSTS_VALU_FMA_F32": 10.0, "SQ_INSTS_VALU_TRANS_F32": 1.0, "SQ_INSTS_VALU_MFMA_MOPS_BF16": 3.0}
    assert derived.amd_operations(counters) == {"float32": 64.0 * 21, "float64": 0.0, "bfloat16": 512.0 * 3}
    del counters["SQ_INSTS_VALU_ADD_F64"]
    assert derived.amd_operations(counters) is None


def test_a_share_of_a_peak_that_is_not_known_is_left_out() -> None:
    peaks = {"bfloat16": 100.0, "float32": 10.0}
    assert derived.operations_of_peak({"bfloat16": 100.0, "float32": 10.0}, 4.0, peaks) == pytest.approx(0.5)
    assert derived.operations_of_peak({"bfloat16": 100.0, "float8": 0.0}, 4.0, peaks) == pytest.approx(0.25)
    assert derived.operations_of_peak({"bfloat16": 100.0, "float8": 1.0}, 4.0, peaks) is None


def test_cycles_are_those_of_one_xcd() -> None:
    assert derived.amd_cycles({"GRBM_GUI_ACTIVE": 800.0}, AGENT) == 100.0
    assert derived.amd_cycles({"GRBM_GUI_ACTIVE": 0.0}, AGENT) is None
    every = 100.0 * 304 * 4
    assert derived.amd_matrix_use({"GRBM_GUI_ACTIVE": 800.0, "SQ_VALU_MFMA_BUSY_CYCLES": every}, AGENT) == 1.0
    # 32 waves a compute unit for 100 cycles are 3200 wave cycles, counted in fours.
    full = 100.0 * 304 * 32 / 4
    assert derived.amd_occupancy({"GRBM_GUI_ACTIVE": 800.0, "SQ_WAVE_CYCLES": full}, AGENT) == 1.0


def test_shares_stay_within_one() -> None:
    counters = {"GRBM_GUI_ACTIVE": 800.0, "SQ_VALU_MFMA_BUSY_CYCLES": 1e9}
    assert derived.amd_figures(counters, 1.0, MI300X, AGENT)[metrics.MATRIX_UNIT_USE].value == 1.0


def test_the_roof_is_the_nearer_of_both() -> None:
    counters = {
        "dram__bytes.sum": 3.35e9,
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 0.0,
        **{
            f"smsp__sass_thread_inst_executed_op_{letter}{kind}_pred_on.sum": 0.0
            for letter in "fhd"
            for kind in ("add", "mul", "fma")
        },
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 0.1 * 66.9e9 / 2,
    }
    found = derived.nvidia_figures(counters, 2e-3, H100)
    assert found[metrics.BANDWIDTH_OF_PEAK].value == pytest.approx(0.5)
    assert found[metrics.FLOPS_OF_PEAK].value == pytest.approx(0.05)
    assert found[metrics.OF_ROOF].value == pytest.approx(0.5)


@pytest.mark.parametrize("seconds", [None, 0.0, 1e-3])
def test_nothing_comes_of_no_counters(seconds: float | None) -> None:
    assert derived.amd_figures({}, seconds, MI300X, AGENT) == {}
    assert derived.nvidia_figures({}, seconds, H100) == {}


def test_without_facts_there_are_rates_but_no_shares() -> None:
    found = derived.amd_figures({"FETCH_SIZE": 1000.0, "WRITE_SIZE": 0.0}, 1e-3, None, None)
    assert set(found) == {metrics.BANDWIDTH}
    assert math.isclose(found[metrics.BANDWIDTH].value, 1.024e9)
