"""Tasks: reading them, what they may say, and the names of their groups."""
