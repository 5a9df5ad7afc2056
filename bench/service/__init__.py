"""The bench of the broker's service."""
