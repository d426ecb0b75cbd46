"""How a runner is started, limited, watched and killed. Standard library only: every process here starts fast."""
