"""The files or modules that offer something: loaded, and loaded again when they change."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import traceback
from types import ModuleType
from typing import Dict, List, Optional, Tuple

from . import offers
from .offers import Offer


def _load_file(path: str) -> ModuleType:
    full = os.path.abspath(path)
    folder, name = os.path.split(full)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module_name = os.path.splitext(name)[0]
    spec = importlib.util.spec_from_file_location(module_name, full)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    return module


def load(names: List[str]) -> Dict[str, Offer]:
    """What files (mine.py) and modules (package.mine) offer, by role and name."""
    offers.registered.clear()
    for name in names:
        if name.endswith(".py"):
            _load_file(name)
        else:
            sys.modules.pop(name, None)
            importlib.import_module(name)
    return dict(offers.registered)


class Reloading:
    """Loads them anew when a file of theirs is saved."""

    def __init__(self, names: List[str]) -> None:
        self._names = names
        self._seen = self._stamps()

    def _stamps(self) -> Dict[str, Tuple[int, int]]:
        stamps = {}
        for name in self._names:
            module = None if name.endswith(".py") else sys.modules.get(name)
            path = getattr(module, "__file__", None) if module else name
            try:
                stat = os.stat(path or name)
                stamps[name] = (stat.st_mtime_ns, stat.st_size)
            except OSError:
                pass
        return stamps

    def __call__(self) -> Optional[Dict[str, Offer]]:
        """What is offered now if something was saved since, else None; what cannot be loaded is shown and changes nothing."""
        stamps = self._stamps()
        if stamps == self._seen or len(stamps) < len(self._names):
            return None
        self._seen = stamps
        importlib.invalidate_caches()
        try:
            found = load(self._names)
        except Exception:
            traceback.print_exc()
            return None
        print(f"loaded again: {', '.join(self._names)}", file=sys.stderr)
        return found
