"""The part of fast builds that runs in the candidate's process, where it is not trusted."""
