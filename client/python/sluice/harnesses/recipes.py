"""What each harness is made of: its packages, in the version with which it was tried, and its program."""

from __future__ import annotations

import platform
from typing import Dict, NamedTuple, Tuple, Union

from ..errors import SluiceError


class HarnessError(SluiceError):
    """What cannot be installed, or is not what was installed: why, and what would help."""


class Npm(NamedTuple):
    """Packages as NAME@VERSION, and bin/PROGRAM as links below node_modules, patterns."""

    version: str
    program: str
    packages: Tuple[str, ...]
    links: Dict[str, str]
    probe: Tuple[str, ...] = ("--version",)

    @property
    def source(self) -> str:
        return "npm"


class Pypi(NamedTuple):
    """Requirements, and those of which no further ones are wanted; a Python of this version at least is copied beside them."""

    version: str
    program: str
    packages: Tuple[str, ...]
    python: Tuple[int, int] = (3, 11)
    probe: Tuple[str, ...] = ("--help",)
    bare: Tuple[str, ...] = ()
    links: Dict[str, str] = {}   # more names in bin/
    beside: Tuple[str, ...] = ()   # programs of this node that are copied, too

    @property
    def source(self) -> str:
        return "pypi"


Recipe = Union[Npm, Pypi]

_MACHINE = "linux-arm64" if platform.machine() == "aarch64" else "linux-x64"
_NODE = f"node-{_MACHINE}"

RECIPES: Dict[str, Recipe] = {
    # Its LiteLLM does not start without mcp.
    "mini-swe-agent": Pypi("2.4.6", "mini", ("mini-swe-agent=={version}", "mcp")),
    "claude-code": Npm("2.1.328", "claude", ("@anthropic-ai/claude-code@{version}",),
                       {"claude": f"@anthropic-ai/claude-code-{_MACHINE}/claude"}),
    "codex": Npm("0.169.0", "codex", ("@openai/codex@{version}",), {"codex": f"@openai/codex-{_MACHINE}/vendor/*/bin/codex"}),
    "opencode": Npm("1.18.33", "opencode", ("opencode-ai@{version}",), {"opencode": f"opencode-{_MACHINE}/bin/opencode"}),
    "qwen-code": Npm("0.24.4", "qwen", ("@qwen-code/qwen-code@{version}", f"{_NODE}@22"),
                     {"qwen": ".bin/qwen", "node": f"{_NODE}/bin/node"}),
    # Without its browser, and what reads a user's mind: their packages are ten times the rest, and the agent does not use them.
    "openhands": Pypi("1.58.2", "openhands-python", ("openhands-sdk=={version}", "binaryornot", "cachetools", "libtmux"), (3, 12),
                      ("-c", "import openhands.tools.preset.default"), ("openhands-tools=={version}",), {"openhands-python": "python3"}),
    # It types into a terminal of tmux.
    "terminus-2": Pypi("0.25.0", "terminus-python", ("harbor=={version}",), (3, 12), ("-c", "import harbor.agents.terminus_2.terminus_2"), (),
                       {"terminus-python": "python3"}, ("tmux",)),
    "pi": Npm("1.5.2", "pi", ("@earendil-works/pi-coding-agent@{version}", f"{_NODE}@22"), {"pi": ".bin/pi", "node": f"{_NODE}/bin/node"}),
}


def find(name: str) -> Recipe:
    if name not in RECIPES:
        raise HarnessError(f"there is no harness {name!r}; there are: {', '.join(RECIPES)}")
    return RECIPES[name]
