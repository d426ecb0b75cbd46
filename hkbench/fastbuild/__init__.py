"""Faster builds of torch extensions, by precompiled headers."""
