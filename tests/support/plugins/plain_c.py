"""A backend as somebody else would add it: kernels in plain C, compiled by `cc` and called through ctypes.

This file and one entry point are all of it (tests/integration/test_backend_plugin.py).
"""

from __future__ import annotations

from hkbench.backends import Backend, OwnCode, Provision
from hkbench.errors import ToolchainUnavailable
from hkbench.records import DeviceFacts, DeviceKind, KernelLanguage
from hkbench.toolchain.programs import find_program

CARD = """## Plain C
Write the kernel as C in a string, compile it with `cc -O3 -shared -fPIC` into the working folder when the file is
imported, and call it through `ctypes`."""


def find_cc() -> None:
    """Raise ToolchainUnavailable where there is no C compiler."""
    if find_program("cc") is None:
        raise ToolchainUnavailable("there is no C compiler here, and backend plain_c needs it: install gcc")


def recognise(own: OwnCode) -> KernelLanguage | None:
    """Recognise a library of the candidate's own that is called through ctypes."""
    if not own.objects or "ctypes.CDLL" not in own.source:
        return None
    return KernelLanguage(backend=PLAIN_C.name, reason=f"{own.objects[0]} is called through ctypes", ran=True)


async def provide(_device: DeviceFacts) -> Provision:
    """Name the standard of the language in each verdict."""
    return Provision(versions={"c": "C17"})


PLAIN_C = Backend(
    name="plain_c",
    language="plain C, called through ctypes",
    devices=frozenset({DeviceKind.CPU}),
    programming_model="loops",
    card="_backend_plain_c.txt",
    partials={"_backend_plain_c.txt": CARD},
    find_tools=(find_cc,),
    provide=provide,
    recognise=recognise,
)
