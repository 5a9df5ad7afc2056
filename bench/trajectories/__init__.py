"""The bench of trajectories and streams."""
