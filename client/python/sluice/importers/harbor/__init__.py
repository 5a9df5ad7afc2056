"""Harbor's task folders become tasks (docs/tasks/harbor.md): task.toml, instruction.md, environment/, tests/, solution/.

    from sluice.importers.harbor import HarborChoices, import_folders

    for task in import_folders(["datasets/mine"], HarborChoices()):
        print(task.text if task.text else f"{task.place}: {task.why}")

Nothing of a folder is executed here.
"""

from .choices import HarborChoices
from .folders import import_folders

__all__ = ["HarborChoices", "import_folders"]
