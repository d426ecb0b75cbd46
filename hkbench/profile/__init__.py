"""What profilers say, as one `KernelProfile`, and what a prompt may say about it.

torch's profiler runs in the runner (`kernel_profile` reads its answer). The makers' profilers run around a command:
`choose` and `plan` say how, `read_profile` reads what they wrote, `explain` says why one failed.
"""

from hkbench.device_kinds import Profiler
from hkbench.profile.choose import Choice, Plan, Step, choose, explain, meaning, passes, plan, printed
from hkbench.profile.read import read_profile
from hkbench.profile.tables import ProfileUnreadable
from hkbench.profile.torch_profiler import kernel_profile

__all__ = [
    "Choice",
    "Plan",
    "ProfileUnreadable",
    "Profiler",
    "Step",
    "choose",
    "explain",
    "kernel_profile",
    "meaning",
    "passes",
    "plan",
    "printed",
    "read_profile",
]
