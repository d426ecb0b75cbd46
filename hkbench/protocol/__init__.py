"""What both sides of the wire share: messages, shared memory, the gate of a call. It trusts neither side."""
