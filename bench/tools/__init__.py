"""The bench of tools."""
