"""One module for each trainer: sluice.adapters.NAME imports that trainer, and none of the others (docs/trainers.md)."""
