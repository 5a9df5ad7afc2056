"""Tasks out of the rows of other people's data sets (docs/tasks/importers.md).

    from sluice.importers import import_rows

    for row in import_rows("humaneval", ["HumanEval.jsonl.gz"]):
        print(row.text if row.text else f"{row.place}: {row.why}")

On the command line: python -m sluice.importers FORM FILE... -o tasks.jsonl. Nothing that a row holds is ever executed or
unpickled here, and what is written passes the check that `sluice submit` makes.
"""

from .forms import FORMS, Form
from .importing import Choices, Imported, import_rows

__all__ = ["FORMS", "Form", "Choices", "Imported", "import_rows"]
