"""Occupancy, metadata and instruction counts of really compiled kernels, beside what the compiler itself remarks."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.compilers import hip_or_skip

from hkbench.records import KernelResources
from hkbench.toolchain.build_hip import build_hip
from hkbench.toolchain.code_object import NotInspected, Tools, code_objects, metadata
from hkbench.toolchain.extension import ExtensionCall
from hkbench.toolchain.hip import ARCHITECTURES, HipToolchain
from hkbench.toolchain.occupancy import ATTRIBUTE, LDS, REGISTERS, SGPRS, WORKGROUP
from hkbench.toolchain.resources import demangled, inspected, parse_resources, with_findings

pytestmark = pytest.mark.hipcc

SOURCE = Path(__file__).parent / "data" / "occupancy_kernels.hip"
LDS_BYTES = {"gfx942": 65536, "gfx950": 163840}
Kernels = dict[str, KernelResources]


@pytest.fixture(scope="module")
def toolchain() -> HipToolchain:
    return hip_or_skip("no kernel was compiled")


def _tools(toolchain: HipToolchain, folder: Path) -> Tools:
    return Tools(toolchain, folder, time.monotonic() + 120)


@pytest.fixture(scope="module")
def compiled(toolchain: HipToolchain, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kernels]:
    """Architecture -> the kernels of SOURCE by their short names."""
    found = {}
    for arch in ARCHITECTURES:
        folder = tmp_path_factory.mktemp(arch)
        command = toolchain.compile_command(SOURCE, folder / "kernels.o", arch)
        shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
        remarks = parse_resources(shown.stderr, arch)
        known = with_findings(demangled(inspected(remarks, folder / "kernels.o", arch, _tools(toolchain, folder))))
        found[arch] = {kernel.name.removeprefix("void ").partition("(")[0]: kernel for kernel in known}
    return found


@pytest.fixture(params=ARCHITECTURES)
def kernels(request: pytest.FixtureRequest, compiled: dict[str, Kernels]) -> Kernels:
    return compiled[request.param]


def test_our_rules_agree_with_the_compilers_remark_or_the_difference_is_known(kernels: Kernels) -> None:
    differing = {
        name: (kernel.whole_workgroup_waves_per_simd, kernel.occupancy_waves_per_simd)
        for name, kernel in kernels.items()
        if kernel.whole_workgroup_waves_per_simd != kernel.occupancy_waves_per_simd
    }
    whole_workgroups = {"crowded<40, 1024>": (4, 7), "many_scalars": (4, 7)}  # 16 waves a workgroup: one or two fit
    blocks_of_lds = {"gfx942": {"in_lds<5461>": (2, 3)}, "gfx950": {"in_lds<13653>": (2, 3)}}
    assert differing == whole_workgroups | blocks_of_lds[kernels["matrix"].arch]


def test_what_limits_each_kernel(kernels: Kernels) -> None:
    limits = {name: kernel.limited_by for name, kernel in kernels.items() if kernel.limited_by}
    assert limits == {
        "in_lds<5461>": (LDS,),
        "in_lds<13653>": (LDS,),
        "in_lds<16000>": (LDS,),
        "crowded<40, 1024>": (REGISTERS, WORKGROUP),
        "crowded<60, 256>": (REGISTERS,),
        "crowded<200, 256>": (REGISTERS,),
        "crowded<200, 1024>": (REGISTERS,),
        "many_scalars": (SGPRS, WORKGROUP),
        "capped": (ATTRIBUTE,),
    }
    assert kernels["in_lds<1024>"].limited_by == ()


def test_the_next_step(compiled: dict[str, Kernels]) -> None:
    steps = {name: kernel.next_step for name, kernel in compiled["gfx942"].items() if kernel.next_step}
    assert steps["in_lds<16000>"] == "32768 bytes of LDS a workgroup or fewer would give 2 waves a SIMD"
    assert steps["crowded<60, 256>"] == "96 VGPRs or fewer would give 5 waves a SIMD"
    assert steps["crowded<200, 256>"] == "256 VGPRs and AGPRs together or fewer would give 2 waves a SIMD"
    assert steps["many_scalars"] == "100 SGPRs or fewer would give 8 waves a SIMD"
    larger = compiled["gfx950"]["in_lds<16000>"].next_step
    assert larger == "53760 bytes of LDS a workgroup or fewer would give 3 waves a SIMD"


def test_launch_bounds_are_in_the_metadata(kernels: Kernels) -> None:
    sizes = {name: kernel.max_workgroup_size for name, kernel in kernels.items()}
    assert (sizes["many_scalars"], sizes["sized_at_launch"], sizes["matrix"]) == (1024, 512, 256)
    assert sizes["outlined"] is None


def test_lds_that_a_launch_asks_for_is_noticed(kernels: Kernels) -> None:
    one = kernels["sized_at_launch"]
    assert (one.lds_bytes, one.dynamic_lds) == (0, True)
    assert one.lds_budget == LDS_BYTES[one.arch] // 4  # 512 threads: four workgroups have all 32 waves
    assert kernels["matrix"].dynamic_lds is False
    assert kernels["in_lds<1024>"].dynamic_lds is None
    assert kernels["calling"].dynamic_lds is None


def _some(kernel: KernelResources, *names: str) -> dict[str, int]:
    assert kernel.instructions is not None
    return {name: count for name, count in kernel.instructions.items() if name.startswith(names)}


def test_instructions_by_class(kernels: Kernels) -> None:
    memory = ("global", "buffer", "flat", "scratch", "lds", "mfma", "lane", "barrier")
    assert _some(kernels["matrix"], *memory) == {
        "mfma_f32_16x16x16_bf16": 1,
        "global_load_b64": 2,
        "global_store_b128": 1,
    }
    assert _some(kernels["vectors"], *memory) == {"global_load_b128": 1, "global_store_b128": 1}
    assert _some(kernels["vectors"], "transcendental") == {"transcendental": 2}
    in_lds = {"global_load_b32": 1, "global_store_b32": 1, "lds_read_b32": 1, "lds_write_b32": 1, "barrier": 1}
    assert _some(kernels["in_lds<1024>"], *memory) == in_lds
    direct = _some(kernels["straight_to_lds"], "global", "lane")
    assert (direct["global_load_lds_b32"], direct["global_atomic"], direct["lane_permute"]) == (1, 1, 1)
    for kernel in kernels.values():
        assert kernel.instructions is not None
        assert "other" not in kernel.instructions
        assert kernel.is_function or kernel.instructions["control"] >= 1  # its s_endpgm


def test_a_function_that_was_not_inlined_stands_apart(kernels: Kernels) -> None:
    assert [name for name, kernel in kernels.items() if kernel.is_function] == ["outlined"]
    assert _some(kernels["calling"], "call") == {"call": 1}
    assert any("outlined(float)" in finding for finding in kernels["calling"].findings)
    assert kernels["outlined"].vgprs is None


def test_findings_of_compiled_kernels(kernels: Kernels) -> None:
    spilling = kernels["crowded<200, 1024>"]
    assert "__launch_bounds__" in spilling.findings[0]
    assert f"{spilling.vgpr_spills} VGPRs spill to {spilling.scratch_bytes_per_lane} bytes" in spilling.findings[0]
    assert sum(_some(spilling, "scratch").values()) > 0
    assert kernels["in_lds<16000>"].findings[0].startswith("LDS (64000 bytes a workgroup) limits the occupancy")
    assert "wider than 64 bits" in kernels["matrix"].findings[0]
    assert kernels["vectors"].findings == ()
    narrow_for_gfx950 = any("no global load" in finding for finding in kernels["straight_to_lds"].findings)
    assert narrow_for_gfx950 == (kernels["matrix"].arch == "gfx950")


DEVICE = "#include <hip/hip_runtime.h>\n__global__ void NAME(float* x) { x[threadIdx.x] *= 2; }\n"
HOST = '#include <Python.h>\nextern "C" PyObject* PyInit_ext() { return nullptr; }\n'


def test_a_library_of_two_translation_units_has_two_code_objects(toolchain: HipToolchain, tmp_path: Path) -> None:
    objects = []
    for name in ("first", "second"):
        source = tmp_path / f"{name}.hip"
        source.write_text(DEVICE.replace("NAME", name))
        objects.append(str(tmp_path / f"{name}.o"))
        command = toolchain.compile_command(source, Path(objects[-1]), "gfx942", remarks=False)
        subprocess.run(command, check=True, timeout=300)
    library = tmp_path / "both.so"
    folders = [f"-L{folder}" for folder in toolchain.library_folders()]
    subprocess.run(["c++", "-shared", *objects, "-o", str(library), *folders, "-lamdhip64"], check=True, timeout=300)
    tools = _tools(toolchain, tmp_path / "work")
    found = code_objects(library, "gfx942", tools)
    assert [metadata(one, tools)[0].name for one in found] == ["_Z5firstPf", "_Z6secondPf"]
    with pytest.raises(NotInspected, match=r"both\.so has no device code for gfx950"):
        code_objects(library, "gfx950", tools)


@pytest.mark.parametrize("missing", ["", "llvm-objdump"])
def test_a_build_without_llvms_tools_is_a_build(toolchain: HipToolchain, tmp_path: Path, missing: str) -> None:
    if missing and (toolchain.root / "llvm" / "bin" / missing).exists():
        pytest.skip("ROCm brings its own tools")
    hipcc = tmp_path / "hipcc"
    hipcc.write_text(
        f'#!/bin/sh\n[ "$1" = "-print-prog-name={missing}" ] && echo {missing} && exit\nexec {toolchain.hipcc} "$@"\n'
    )
    hipcc.chmod(0o755)
    lean = {"name": "ext", "no_implicit_headers": True, "cpp_sources": HOST}
    call = ExtensionCall.model_validate({**lean, "cuda_sources": DEVICE.replace("NAME", "doubled")})
    result = build_hip(call, "gfx942", tmp_path / "build", 300, replace(toolchain, hipcc=hipcc))
    assert result.error is None
    (kernel,) = result.resources
    assert (kernel.name, kernel.occupancy_waves_per_simd) == ("doubled(float*)", 8)
    open_points = [note for note in result.not_checked if note.startswith("instructions and occupancy")]
    if missing:
        assert (kernel.instructions, kernel.limited_by) == (None, None)
        assert open_points == [
            "instructions and occupancy limits of the kernels: llvm-objdump is not installed beside the HIP compiler "
            "(LLVM's tools have it)"
        ]
    else:
        assert open_points == []
        assert kernel.instructions is not None
        assert kernel.instructions["global_load_b32"] == 1
        assert kernel.max_workgroup_size == 1024
