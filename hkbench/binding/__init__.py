"""Bind a bare kernel, one without `ModelNew`, to the problem that it was written for, where that is certain."""

from hkbench.binding.bind import bind_file, bind_reply, is_bare, may_be_bound, note_of, with_note

__all__ = ["bind_file", "bind_reply", "is_bare", "may_be_bound", "note_of", "with_note"]
