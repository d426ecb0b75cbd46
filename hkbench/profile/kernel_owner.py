"""Whose kernel it is that ran on a GPU, by its name and by what a candidate's file and build hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable

from hkbench.profile.names import Built, base, qualified
from hkbench.records import Owner

#: Kernels of PyTorch that only make, move or convert memory, and what the driver does itself.
HOUSEKEEPING = re.compile(
    r"FillFunctor|direct_copy_kernel|(?:bfloat16|float16|float8)_copy_kernel|CatArrayBatchedCopy|copy_device_to_device"
)
_DRIVER = re.compile(r"^Mem(?:cpy|set) |^__amd_rocclr_")
#: Namespaces at the beginning of a qualified name that are never a candidate's.
_PYTORCH_HEAD = re.compile(
    r"^(?:at|c10|at_cuda_detail|at_hip_detail|pytorch_flash|torch)::|^PyTorchMemEff|^fmha_cutlass"
)
_LIBRARY_HEAD = re.compile(
    r"(?:^|::)(?:cutlass|cute|ck|ck_tile|cub|hipcub|thrust|rocprim|cudnn\w*|cublas\w*|miopen|rocblas|hipblaslt|cufft|cusparse"
    r"|cusolver|magma\w*|flashinfer|transformer_engine|xformers|aiter|nvte)::",
    re.IGNORECASE,
)
#: Names of kernels that libraries do not put into a namespace, in the vendor's full form alone: with its tile, its
#: layout, its stages. `hopper_gemm_kernel` is anybody's.
_TILE = r"\d+x\d+"
_VENDOR = re.compile(
    rf"^(?:void )?(?:nvjet_(?:sm\d+_)?[a-z]+_{_TILE}_{_TILE}\w*"
    rf"|cutlass\w*?_(?:tensorop|simt|wmma)\w*_(?:[shdcziubfe]\w*)?(?:gemm|fprop|dgrad|wgrad)\w*_{_TILE}\w*_align\d+\w*"
    r"|cudnn_generated_\w+_sm\d+_\w+"
    r"|(?:Custom_)?Cijk_[A-Z]\w+|miopen(?:Sp3Asm|GcnAsm)\w+|MIOpen[A-Z]\w+"
    rf"|igemm_(?:fwd|bwd|wrw)_gtc\w*_bt{_TILE}x\d+_wt{_TILE}x\d+\w*"
    rf"|(?:maxwell|pascal|volta|turing|ampere|hopper|blackwell)_\w*(?:gemm|scudnn|fprop|dgrad|wgrad)\w*_{_TILE}\w*_[nt][nt]"
    r"(?:_v\d+)?"
    rf"|sm\d+_xmma_(?:gemm|fprop|dgrad|wgrad|conv)\w*_tilesize{_TILE}x\d+\w*)(?:[.<(]|$)"
    r"|^void (?:gemv2[NT]_kernel(?:_val)?<int, int, |gemvNSP_kernel<\w+, \w+, \w+, \w+, \d|gemmk1_kernel<\w+, \d+, "
    r"|gemmSN_[NT]{2}_kernel<\w+, \d+, \d+, |(?:im|ex)plicit_convolve_[a-z]*gemm<\w+, \w+, \d+, \d+, "
    rf"|fft2d_[rc]2[rc]_{_TILE}<|conv2d_c1_k1_nchw_\w+<)"
)
#: PyTorch's warp softmax, which it keeps in an anonymous namespace: three types, the logarithm of the width, two flags.
_PYTORCH_NAME = re.compile(
    r"^void \(anonymous namespace\)::softmax_warp_(?:for|back)ward<[^<>]+, [^<>]+, [^<>]+, \d+, (?:true|false), "
)
_FOREIGN_ARGUMENTS = re.compile(r"\b(at::native|cublas\w*|cudnn\w*|rocblas\w*)", re.IGNORECASE)
#: Special functions of which PyTorch compiles a kernel when one is first called (ATen/native/cuda/Math.cuh).
_JITERATED = re.compile(
    r"^(?:entr|ndtri|log_ndtr|erfcx|digamma|trigamma|polygamma|lgamma|zeta|gcd|lcm|i0|i0e|i1|i1e|sinc|kaiser_window"
    r"|airy_ai|(?:spherical_)?bessel_\w+|(?:scaled_)?modified_bessel_\w+|(?:shifted_)?\w+_polynomial_\w+)"
    r"(?:_vectorized\d+)?_kernel$"
)
_INDUCTOR = re.compile(
    r"^triton_(?:\d*$|(?:poi|red|per|tem|tpl|for|spl|mix|unk)_)|^tensorexpr_|^(?:nvfuser|CudaCodeGen)"
)
_TRITON_SUFFIX = re.compile(r"_(?:\d+[dce]*)+$")


def kernel_owner(name: str, kind: str, defined: frozenset[str], built: Built) -> Owner:
    """Return whose kernel it is; `UNKNOWN` is housekeeping, nobody's."""
    if kind in ("gpu_memcpy", "gpu_memset") or _DRIVER.search(name):
        return Owner.UNKNOWN
    identifier, names = base(name), names_of(name)
    if names & built.foreign.keys():
        return Owner.LIBRARY
    in_source, compiled = bool(names & defined), bool(names & built.kernels)
    if names & built.inductor or (_INDUCTOR.search(identifier) and not (in_source and not built.inductor)):
        return Owner.PYTORCH
    if not compiled and (_INDUCTOR.search(identifier) or _JITERATED.search(identifier)):
        return Owner.PYTORCH  # a kernel of that name stands in the text, and no build left it
    known = _known_owner(name)
    if known is Owner.PYTORCH and HOUSEKEEPING.search(name):
        return Owner.UNKNOWN
    if known is not None:
        return known
    return Owner.CANDIDATE if in_source or compiled else Owner.LIBRARY


def names_of(kernel: str) -> set[str]:
    """Return the identifiers that a kernel can have in its source: Triton appends what it was specialised for."""
    identifier = base(kernel)
    return {identifier, _TRITON_SUFFIX.sub("", identifier)}


def written_names(kernels: Iterable[str], defined: Collection[str]) -> tuple[str, ...]:
    """Return the kernels that are `defined`, each once, as the source names them."""
    return tuple(dict.fromkeys(written for name in kernels for written in sorted(names_of(name) & set(defined))))


def owner_of_kernel(defined: frozenset[str], built: Built) -> Callable[[str], Owner]:
    """Tell whose kernel it is, by its name alone, from what a candidate's file defines and what its build left."""
    return lambda name: kernel_owner(name, "kernel", defined, built)


def _known_owner(name: str) -> Owner | None:
    """Tell PyTorch and libraries by what only they carry. c10::Half or cutlass::half_t among arguments is anyone's."""
    head = qualified(name)
    if _PYTORCH_HEAD.search(head) or _PYTORCH_NAME.search(name):
        return Owner.PYTORCH
    if _LIBRARY_HEAD.search(head) or _VENDOR.search(name):
        return Owner.LIBRARY
    if found := _FOREIGN_ARGUMENTS.search(name.replace(head, "", 1)):
        return Owner.PYTORCH if found[1] == "at::native" else Owner.LIBRARY
    return None
