"""Agents of strategy `agents`, a file each: what it is given, what it answers. `flow` says who is asked when."""
