"""README.md of an exported directory: what Hugging Face's datasets reads of it, and what a person does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Dict

if TYPE_CHECKING:
    from .exporting import Counts

HEAD = """\
---
configs:
- config_name: default
  data_files:
  - split: train
    path: data/*.{ending}
---
# {stream}: {format}

Rows of [Sluice](docs/export.md): {rows} of numbers {first} to {last} of the stream `{stream}`; {left_out} left out, {unreadable} unreadable.

```python
from datasets import load_dataset

rows = load_dataset("PATH OF THIS DIRECTORY", split="train")
```

Made with: `{settings}`

| column | type |
|---|---|
"""


def _type(kind: Any) -> str:
    if isinstance(kind, dict):
        return "{" + ", ".join(kind) + "}"
    return f"list of {_type(kind[0])}" if isinstance(kind, list) else str(kind)


def card_of(settings: Dict[str, Any], counts: Counts, ending: str, kinds: Dict[str, Any]) -> str:
    head = HEAD.format(ending=ending, stream=settings["stream"], format=settings["format"], rows=counts.rows, first=counts.from_seq,
                       last=counts.to_seq, left_out=counts.left_out, unreadable=counts.unreadable,
                       settings=json.dumps(settings, sort_keys=True, ensure_ascii=True).replace("`", "'"))
    return head + "".join(f"| `{name}` | {_type(kind)} |\n" for name, kind in kinds.items())
