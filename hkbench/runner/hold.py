"""How long a GPU's stream is held up before a timed call. No torch: the judge's clocks allow for it too."""

#: How long a GPU is kept waiting after the flush, before the first event of a timed call: so that the host, which was
#: stopped a moment ago, has queued the forward pass when the clock begins. Its own time was up to 0.3 ms on an H200.
HOLD_SECONDS = 5e-4
