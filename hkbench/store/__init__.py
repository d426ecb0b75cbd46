"""The run folder on disk: layout, atomic writes, journal, resume."""
