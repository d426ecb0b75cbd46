"""Numbers that both sides of the wire have to agree on; importing them needs no torch."""

#: How long a GPU is kept waiting after the flush, before the first event of a timed call: so that the host, which was
#: stopped a moment ago, has queued the forward pass when the clock begins. Its own time was up to 0.3 ms on an H200.
HOLD_SECONDS = 5e-4

#: The class of a problem's file that is its best-known way by a library, a baseline beside its `Model`.
BEST_CLASS = "ModelBest"

#: Forward passes of one call under torch's profiler (runner/profile.py): one warms up.
PROFILED_PASSES = 3
PROFILED_FORWARDS = 1 + PROFILED_PASSES

#: The environment's variable that has the path of Proton's session, without its ending, for who is to begin one.
PROTON_SESSION = "HKBENCH_PROTON_SESSION"

#: The environment's variable that is set for runners which see no library's device code (engine/stripped.py).
WITHOUT_LIBRARIES = "HKBENCH_WITHOUT_LIBRARIES"
