"""The bench of sandboxes and layers."""
