"""What a problem is: its reference, its inputs, tolerances, graph and roofline. No process, no candidate."""
