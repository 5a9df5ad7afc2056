"""The bench of fleets of nodes."""
