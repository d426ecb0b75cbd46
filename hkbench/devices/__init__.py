"""The devices that measure: discovery, peaks, cache sizes."""
