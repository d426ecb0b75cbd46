"""These tests compute with one thread."""

from support.one_thread import one_thread

__all__ = ["one_thread"]
