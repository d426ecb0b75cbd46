"""Evaluators for a device that is not there: candidates are compiled, and nothing is executed."""
