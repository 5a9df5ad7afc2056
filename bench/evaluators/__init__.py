"""The bench of evaluators."""
