"""From a candidate's sources to a compiled extension."""
