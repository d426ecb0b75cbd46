"""C++ on the CPU, as an extension of PyTorch."""

from __future__ import annotations

from hkbench.backends.base import Backend, OwnCode
from hkbench.records import KernelLanguage


def _recognise(own: OwnCode) -> KernelLanguage | None:
    """Recognise C++ where instruction pointers were sampled in a library that the candidate's build left."""
    if not own.objects:
        return None
    return KernelLanguage(backend=CPP.name, reason=f"native code of its {own.objects[0]} ran", ran=True)


CPP = Backend(
    name="cpp",
    language="C++ on the CPU",
    devices=None,
    programming_model="loops",
    card="_backend_cpp.txt",
    recognise=_recognise,
)
