"""The bench of ways to get batches of groups that are worth learning from."""
