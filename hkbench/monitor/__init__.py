"""Live views of a run: of its folder (`live`), and of the events of a batch at work (`progress`)."""

from hkbench.monitor.live import run_monitor
from hkbench.monitor.progress import Display, make_display

__all__ = ["Display", "make_display", "run_monitor"]
