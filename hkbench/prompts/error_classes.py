"""What kind of mistake a message of a compiler, of hipify or of a linker speaks of.

Each class is a regular expression on the line of the error, and where that line is not enough one on the source lines
and notes below it. The messages are those of clang for AMD GPUs, g++, ld, lld and nvcc; docs/errors.md shows for each
class the message it was tested on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

SHOWN_CLASSES = 8  #: whose hints a prompt gives; a hint has up to 400 characters


@dataclass(frozen=True)
class ErrorClass:
    """One kind of mistake; its hints stand in prompts/config.json under `build_error.KEY`."""

    key: str
    error: re.Pattern[str]  #: searched for in the error's own line
    below: re.Pattern[str] | None = None  #: searched for in that line and what the tool shows below it

    def matches(self, line: str, block: str) -> bool:
        return self.error.search(line) is not None and (self.below is None or self.below.search(block) is not None)


def classify(text: str) -> dict[str, str | None]:
    """Return the classes of the errors in `text`, in the order of the text: key -> the first error's line.

    The line is one of the candidate's own, as "main.cpp:12"; None where the tool names none. An error belongs to one
    class, the first that fits; text without a known error has none. Of more than SHOWN_CLASSES the most specific stay.
    """
    found: dict[int, str | None] = {}
    for line, block in _errors(text):
        fitting = next((number for number, known in enumerate(CLASSES) if known.matches(line, block)), None)
        if fitting is not None:
            key = next(number for number, known in enumerate(CLASSES) if known.key == CLASSES[fitting].key)
            found.setdefault(key, _own_line(block))
    kept = sorted(found)[:SHOWN_CLASSES]
    return {CLASSES[number].key: line for number, line in found.items() if number in kept}


def _own_line(block: str) -> str | None:
    """Return the first line in a source, not in a header, that an error and its notes name."""
    places = (place for place in _PLACE.finditer(block) if not place["file"].endswith((".h", ".cuh", ".hpp")))
    return next((f"{place['file']}:{place['line']}" for place in places), None)


_PLACE = re.compile(
    r"^(?:In file included from )?(?:(?:/[^\s:(/]+)*/)?(?P<file>[\w.\[\]-]+)[:(](?P<line>\d+)[:),]", re.MULTILINE
)
_ERROR_LINE = re.compile(
    r"\berror *: |\bfatal +: |undefined (hidden )?(symbol|reference)|multiple definition of|\bld(\.\w+)?: cannot find "
)
_NO_ERROR = re.compile(r"(^|[\s:])(warning|note): ")


def _errors(text: str) -> Iterator[tuple[str, str]]:
    """Yield each line that is an error, and that line with what follows until the next."""
    # g++ writes typographic quotes where the locale has them.
    lines = text.replace("\u2018", "'").replace("\u2019", "'").splitlines()
    places = [n for n, line in enumerate(lines) if _ERROR_LINE.search(line) and not _NO_ERROR.search(line)]
    for place, end in pairwise([*places, len(lines)]):
        yield lines[place], "\n".join(lines[place:end])


def _class(key: str, error: str, below: str | None = None) -> ErrorClass:
    return ErrorClass(key, re.compile(error), None if below is None else re.compile(below))


_UNKNOWN = (
    r"(undeclared identifier|unknown type name|no template named|no type named|no member named"
    r"|error: identifier) [\"']?"
)
_NOT_DECLARED = r"' (was not declared|has not been declared|does not name a type|is not a member of)"
_NO_MATCH = r"no matching (member )?function for call to '"
_TILE_TYPE = r"kittens::|\b(rt|st|rv|sv|gl)(_\w+)?<"
_IN_KITTENS = rf"(candidate|in instantiation of)[^\n]*({_TILE_TYPE})|note: because [^\n]*kittens::"
_TILE_FUNCTIONS = r"(sqrt|rsqrt|tanh|sigmoid|silu|swish|gelu|erf|sin|cos|pow|fma|clamp|softplus|recip|neg)"
_TILE_CALL = rf"\b{_TILE_FUNCTIONS}\([a-z]\w*, [a-z]\w*\)"
_CDNA4_NAMES = r"([rs]t_\d+x\d+\w*_s|rv_naive|prefill_swizzled_offsets|make_srsrc|rt_shape|st_shape|mma_ABt_scaled)\b"
_CDNA3_NAMES = r"(load_global_to_register_buffer|store_register_buffer_to_shared)\b"
_CUDA_KITTENS = r"(warp|warpgroup|everyone|tma|tt|wgmma)"
_CUDA_HEADER = (
    r"(cuda|cublas|cudnn|cusparse|cufft|curand|cutlass|cute|cub|thrust|nv|mma\.h|sm_\d|device_launch_parameters"
    r"|math_constants|device_functions|cooperative_groups|helper_)[\w/.-]*"
)
_CUDA_NAME = (
    r"(nvcuda|cuda|cub|cutlass|cute|wmma|cp_async\w*|ldmatrix\w*"
    r"|__(dp[24]a|reduce_\w+_sync|cvta_\w+|nanosleep|pipeline_\w+|syncwarp|v(add|sub|max|min|abs|avg)\w*[24]"
    r"|(ld|st)(c[agsv]|wt|wb|lu)|activemask|match_\w+_sync|cluster\w*|isShared))\b"
)
_DEVICE_NAMES = r"(__(global|device|shared|host|constant)__|__launch_bounds__|blockIdx|threadIdx|blockDim|gridDim)"
_BF16 = r"\w*(bfloat16|BFloat16)"

#: The order is that of `classify`: what says most of the mistake comes first, what only names its form last.
CLASSES: tuple[ErrorClass, ...] = (
    # HipKittens: its static assertions, constraints and names.
    _class("shape_combination", r"Unsupported shape combination"),
    _class("mma_dtypes", r"static assertion failed due to requirement '\(std::is_same_v", r"mma_A"),
    _class("accumulator_layout", rf"{_NO_MATCH}(kittens::)?mma_A", r"does not satisfy '(col|row)_layout'"),
    _class("shared_tile_dtype", r"register and shared tile must have the same dtype|failed: Unsupported type$"),
    _class("shared_tile_shape", r"Unsupported subtile sizes|register tile and shared tile must match"),
    _class("tile_multiple", r"static assertion.*must be divisible by the tile"),
    _class("vector_orientation", r"requirement 'std::is_same_v<kittens::ducks::rv_layout"),
    _class("shape_argument", r"too few template arguments for (alias|class) template '(st|rv)(_\w+)?'"),
    _class("cdna4_name", rf"{_UNKNOWN}{_CDNA4_NAMES}"),
    _class("cdna4_name", rf"{_UNKNOWN}ones'", r"\bones\("),
    _class("cdna3_name", rf"{_UNKNOWN}{_CDNA3_NAMES}"),
    _class("cdna3_name", rf"{_UNKNOWN}one'", r"\bone\("),
    _class("unknown_namespace_warp", rf"{_UNKNOWN}{_CUDA_KITTENS}'", rf"\b{_CUDA_KITTENS}\s*::"),
    _class("unknown_namespace_warp", rf"{_UNKNOWN}(semaphore|init_semaphore|tensor_allocator|(load|store)_async)\b"),
    _class("group_member", r"no (member|type|template) named '\w+' in 'kittens::group<"),
    _class("tile_function", rf"{_NO_MATCH}{_TILE_FUNCTIONS}'", rf"{_TILE_TYPE}|{_TILE_CALL}"),
    _class("tile_function", rf"{_UNKNOWN}{_TILE_FUNCTIONS}'", _TILE_CALL),
    _class(
        "tile_load", rf"{_NO_MATCH}(kittens::)?(group<\d+>::)?(load|store)'", r"(global|shared)_to_(register|shared)"
    ),
    _class("layout_swap", r"static assertion failed: (Unsupported (\w+ )*swap|Unsupported dtype|Vector layout conv)"),
    _class("tile_operands", r"no matching function for call", _IN_KITTENS),
    _class("tile_operands", r"static assertion failed.*: .*must (have|be) the same", _IN_KITTENS),
    _class("missing_specialisation", r"undefined (hidden )?symbol: .*\bop<"),
    _class("kittens_header", r"(kittens|pyutils)\.cuh'?(: No such file| file not found)"),
    # The architecture and its instructions.
    _class(
        "target_feature",
        r"needs target feature|instruction not supported on this GPU|Cannot select: intrinsic|invalid target ID",
    ),
    _class("ptx_asm", r"invalid (instruction|(in|out)put constraint '[=+]?[lfhdnC]')", r"asm\b"),
    _class("asm_operand", r"error: (invalid|unknown|expected|not a valid|couldn't allocate|operand)", r"<inline asm>"),
    _class("constant_argument", r"argument to '__builtin_\w+' must be a constant integer"),
    _class("amd_builtin", rf"{_UNKNOWN}__builtin_amdgcn_"),
    _class("builtin_arguments", r"cannot initialize a parameter|too (few|many) arguments", r"__builtin_amdgcn_"),
    _class("warp_mask_width", r"mask must be a 64-bit integer"),
    _class("lds_overflow", r"local memory \(\d+\) exceeds limit|uses too much shared data"),
    _class("launch_bounds", r"amdgpu_flat_work_group_size|launch_bounds"),
    # Types of two bytes.
    _class("bf16_mixup", r"\b(__nv_bfloat16\w*|nv_bfloat16\w*|hip_bfloat16)['\"]( was not|; did|$| is undefined)"),
    _class("atomic_overload", rf"{_NO_MATCH}(unsafe|safe)?[aA]tomic\w+"),
    _class("bf16_mixup", rf"(no viable|cannot initialize|invalid operands).*{_BF16}"),
    _class("half_operators", r"(no viable|invalid operands|ambiguous).*\b__half2?\b"),
    _class("bf16_mixup", r"no viable|no matching function", rf"no known conversion from '[^']*{_BF16}"),
    _class("half_operators", r"no viable", r"no known conversion from '[^']*' to '(const )?__half2?'"),
    # CUDA that HIP has not.
    _class("hipify_else", r"'else[A-Za-z_]\w*'"),
    _class(
        "cuda_header",
        rf"'{_CUDA_HEADER}' file not found|: {_CUDA_HEADER}: No such file|open source file \"{_CUDA_HEADER}\"",
    ),
    _class("cuda_intrinsic", rf"({_UNKNOWN}|{_NO_MATCH}){_CUDA_NAME}"),
    _class("cooperative_groups", r"'cooperative_groups'"),
    # The host's half of an extension.
    _class("hip_platform", r"Must define exactly one of __HIP_PLATFORM_AMD__"),
    _class("device_code_in_cpp", rf"'{_DEVICE_NAMES}{_NOT_DECLARED}"),
    _class("device_code_in_cpp", r"expected primary-expression before '[<>]' token", r"<<<"),
    _class("torch_stream", r"'getCurrent(CUDA|HIP)Stream|'(c10|at)::(cuda|hip)' has not been declared"),
    _class("runtime_name_in_cpp", rf"'(cuda|hip)[A-Z]\w*{_NOT_DECLARED}"),
    _class("pybind_header", r"expected constructor, destructor, or type conversion before '\('", r"PYBIND11_MODULE"),
    _class("cxx_standard", r"C\+\+\d+ (or later )?compatible compiler|(unknown type name '|')concept'"),
    _class("missing_include", r"error: ", r"did you forget to '#include|maybe try to include"),
    _class("missing_library", r"cannot find -l|unable to find library"),
    _class("missing_header", r"file not found|No such file or directory|cannot open source file"),
    _class("refused_flag", r"does not pass on these flags|unknown argument|unrecognized command-line option"),
    # Kernels and their launches.
    _class("host_function", r"reference to __host__ function|calling a __host__ function"),
    _class("host_function", r"no matching function", r"call to __host__ function from __(global|device)__ function"),
    _class("kernel_return", r"must have void return type"),
    _class("kernel_call", r"call to global function '\w+' not configured"),
    _class("shared_redeclared", r"redeclaration of '\w+' with a different type: '[^']*\[\]'"),
    _class("array_bound", r"variable length array|array bound is not"),
    _class("narrowing", r"cannot be narrowed|narrowing conversion|invalid narrowing"),
    _class(
        "const_pointer",
        r"casts away qualifiers|cast away const|(cannot initialize|invalid conversion).*'const [^']*'|read-only"
        r"|would lose const|discards qualifiers",
    ),
    _class("conflicting_types", r"no matching function", r"deduced conflicting types"),
    _class("template_argument", r"no matching", r"(invalid explicitly-specified|couldn't infer template) argument"),
    _class("template_argument", r"template argument|non-type template parameter"),
    _class("ambiguous_call", r"is ambiguous"),
    _class("redefinition", r"(re|multiple )definition of|duplicate symbol|cannot overload"),
    # A name that nobody defines: on the device within one source, on the host between the two.
    _class("device_undefined", r"undefined hidden symbol|Unresolved extern function"),
    _class("launcher_mismatch", r"undefined (symbols?|reference)"),
    # Only the form of the mistake.
    _class("call_arguments", rf"too (few|many) arguments|{_NO_MATCH}|no matching function for call"),
    _class(
        "no_member",
        r"no (member|type|template) named|has no member|is not a member of|request for member"
        r"|is not a structure or union",
    ),
    _class(
        "undeclared",
        r"undeclared identifier|unknown type name|not declared|does not name a type|identifier \".*\" is undefined",
    ),
    _class(
        "type_conversion",
        r"cannot (initialize|convert)|no viable|invalid (operands|conversion)|incompatible|subscript operator"
        r"|excess elements",
    ),
    _class("syntax", r"error: (expected|extraneous|missing|unterminated|unmatched|stray|invalid suffix)"),
)

KEYS: tuple[str, ...] = tuple(dict.fromkeys(known.key for known in CLASSES))
