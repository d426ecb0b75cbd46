"""What earlier runs are worth to later ones: a database derived from run folders, and what may be asked of it."""
