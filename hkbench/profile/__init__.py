"""What profilers say, as one `KernelProfile`, and what a prompt may say about it."""

from hkbench.profile.torch_profiler import kernel_profile

__all__ = ["kernel_profile"]
