"""What the caller says beside the folders, and what is told of all of them together."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional


class HarborChoices(NamedTuple):
    image: Optional[str] = None               # of each task, in place of what it says; {task} is its folder's name
    images: Mapping[str, str] = {}            # {name: path}: what docker_image calls so
    prebuilt: bool = False                    # the image is made already: Dockerfiles are not executed
    network_grant: Optional[str] = None       # the grant that stands for network_mode public
    host_grants: Mapping[str, str] = {}       # {host: grant} of allowed_hosts
    files: str = "auto"                       # auto, inline or source
    fields: Mapping[str, Any] = {}            # {"sampling.max_tokens": 4096}: put into each task
    variables: Mapping[str, str] = {}         # the host's, for ${NAME} in env
    limit: Optional[int] = None


class Notes:
    """Warnings, each once however many tasks it is of."""

    def __init__(self) -> None:
        self._folders: Dict[str, Dict[str, None]] = {}

    def add(self, folder: str, text: str) -> None:
        self._folders.setdefault(text, {})[folder] = None

    def lines(self) -> List[str]:
        return [f"warning: {text} ({next(iter(of))}" + (f" and {len(of) - 1} more)" if len(of) > 1 else ")") for text, of in self._folders.items()]
