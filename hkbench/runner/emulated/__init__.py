"""What a candidate sees of an emulated AMD GPU: a runtime that launches in another process, and torch's `cuda`."""
