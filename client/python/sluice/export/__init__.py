"""Trajectories of a stream as files (docs/export.md): parquet, JSON lines, pairs for SFT and DPO.

    from sluice import Client
    from sluice.export import export

    with Client() as client:
        export(client, "train", "out/train", format="parquet")      # datasets.load_dataset("out/train")
"""

from .exporting import Counts, export
from .folder import ExportError

__all__ = ["export", "Counts", "ExportError"]
