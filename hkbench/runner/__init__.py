"""The untrusted side: the only code that imports a candidate. It imports nothing of hkbench outside this room."""
