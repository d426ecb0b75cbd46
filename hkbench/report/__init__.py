"""Reports of a run, and of several side by side: readers of their folders."""
