"""The languages of kernels, one file each; see `base.py`."""

from hkbench.backends.base import Backend, OwnCode, Provision, find_backend, shipped_backends

__all__ = ["Backend", "OwnCode", "Provision", "find_backend", "shipped_backends"]
