"""The bench of model calls."""
