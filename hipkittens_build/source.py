"""The one source file of an extension: the candidate's text, the launcher, and two C functions for each bound function.

Standard library only: what compiles without the GPU writes the same file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

LAUNCHER = Path(__file__).with_name("launcher.h")
LABEL = "hip_source"  #: by this name compilers report a place in the candidate's text
DESCRIBE = "hipkittens_describe_{}"  #: C function () -> const char *, the members' kinds, one a line
LAUNCH = "hipkittens_launch_{}"  #: C function (const char *words, void *stream) -> const char *, null or an error
#: Architecture -> the macro by which HipKittens' headers know it.
MACROS = {
    "gfx942": "KITTENS_CDNA3",
    "gfx950": "KITTENS_CDNA4",
    "gfx1250": "KITTENS_CDNA5",
    **dict.fromkeys(("gfx1100", "gfx1101", "gfx1102"), "KITTENS_RDNA3"),
    **dict.fromkeys(("gfx1201", "gfx1200"), "KITTENS_RDNA4"),
}
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")

# Members that are left out or in another order would be zero, or each other's.
_STRICT = """#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunknown-warning-option"
#pragma clang diagnostic error "-Wreorder-init-list"
#pragma clang diagnostic error "-Wmissing-field-initializers"
#pragma clang diagnostic error "-Wmissing-designated-field-initializers\""""
_FUNCTION = """extern "C" const char *{describe}() {{
  using globals = hipkittens_build::globals_of<decltype(&::{name})>;
  static const std::string text = {described};
  return text.c_str();
}}
extern "C" const char *{launch}(const char *packed, void *stream) {{
  using globals = hipkittens_build::globals_of<decltype(&::{name})>;
  return hipkittens_build::guarded([&] {{
    hipkittens_build::Words words(packed);
    ::{name}(globals{{{members}}}, static_cast<hipStream_t>(stream));
  }});
}}"""


def translation_unit(source: str, functions: Mapping[str, Sequence[str]]) -> str:
    """Return `source` and its bindings. `functions`: name -> the members of its first argument's type, in their order.

    Names have to be identifiers (`IDENTIFIER`).
    """
    bound = [_bound(name, members) for name, members in functions.items()]
    launcher = LAUNCHER.read_text(encoding="utf-8")
    parts = [f'#line 1 "{LABEL}"', source, '#line 1 "launcher.h"', launcher, '#line 1 "bindings"', _STRICT, *bound]
    return "\n".join([*parts, "#pragma clang diagnostic pop", ""])


def compile_flags(macro: str, include: Path, hip_include: Path) -> list[str]:
    """Return flags for a source with `kittens.cuh` and without PyTorch's headers: those of HipKittens' Makefiles.

    `include` is the checkout's folder, `hip_include` that of the HIP headers: HipKittens says `#include <hip_bf16.h>`.
    Up to HIP 6 the constructors of __half2 are not constexpr, which HipKittens takes for granted; the last flag says
    nothing to later ones.
    """
    flags = ["-std=c++20", "-O3", f"-D{macro}", "-DHIP_ENABLE_WARP_SYNC_BUILTINS"]
    return [*flags, f"-I{include}", f"-I{hip_include / 'hip'}", "-Wno-invalid-constexpr"]


def _bound(name: str, members: Sequence[str]) -> str:
    described = " + ".join(f"hipkittens_build::described<decltype(globals::{member})>()" for member in members)
    taken = ", ".join(f".{member} = words.take<decltype(globals::{member})>()" for member in members)
    return _FUNCTION.format(
        name=name,
        describe=DESCRIBE.format(name),
        launch=LAUNCH.format(name),
        described=described or "std::string()",
        members=taken,
    )
