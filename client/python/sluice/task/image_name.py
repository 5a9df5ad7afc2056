"""Names of images that are a registry's, and what to do instead, in the words of schemas/task/image_name.c."""

from __future__ import annotations

import re
from typing import Optional

SHOWN, STEM = 100, 63

REGISTRIES = (("docker://", "docker://", True), ("docker-daemon:", "docker-daemon:", True),
              ("podman://", "docker://", True), ("library://", "library://", False), ("oras://", "oras://", False),
              ("shub://", "shub://", False), ("http://", "http://", False), ("https://", "https://", False))


def _cut(text: str) -> str:
    return text.encode()[:SHOWN].decode(errors="ignore")


def _explain(given: str, source: str, rest: str, has_layout: bool) -> str:
    stem = rest.rpartition("/")[2].encode()[:STEM].decode("latin-1")
    stem = re.sub(r"[^a-zA-Z0-9.\-]", "_", stem) or "image"
    words = (f"{_cut(given)} is a registry's name, and nothing is fetched here: run "
             f"`apptainer build {stem}.sif {source}{_cut(rest)}`")
    if has_layout:
        return words + f" or `skopeo copy {source}{_cut(rest)} oci:{stem}:latest`, and name that file or directory"
    return words + " and name that file"


def explain_image(name: str) -> Optional[str]:
    """None: it is no registry's."""
    for prefix, source, has_layout in REGISTRIES:
        if name.startswith(prefix):
            return _explain(name, source, name[len(prefix):], has_layout)
    if name.startswith("oci:") or not re.fullmatch(r"(?![/.:])[a-zA-Z0-9._\-/:@]*[:@][a-zA-Z0-9._\-/:@]*", name):
        return None
    return _explain(name, "docker://", name, True)
