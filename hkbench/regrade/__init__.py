"""Verdicts that were recorded, judged again by today's rules without running anything."""
