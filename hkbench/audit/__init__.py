"""Audit of data sets: which null controls pass a problem's checks."""
