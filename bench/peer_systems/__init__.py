"""The bench of the same work on other systems."""
