"""What several adapters have in common; nothing of it needs a trainer's package."""
