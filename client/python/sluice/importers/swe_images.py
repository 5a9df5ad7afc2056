"""The names of images of software engineering's sets, and where a prepared one lies.

    swebench/sweb.eval.x86_64.django_1776_django-11099     SWE-bench; __ of the instance is _1776_
    xingyaoww/sweb.eval.x86_64.getmoto_s_moto-7365         SWE-Gym; __ is _s_
    xingyaoww_sweb.eval.x86_64.getmoto_s_moto-7365.sif     as a SIF file; / is _
"""

from __future__ import annotations

import os
from typing import Any, Iterator, Mapping

from .row import RowError, first

FIELDS = ("image", "sif", "instance")


def image_name(row: Mapping[str, Any], instance: str) -> str:
    """What the row calls its image, or SWE-bench's name for its instance; without a tag."""
    given = first(row, "image", "image_name", "docker_image")
    if given is not None and not isinstance(given, str):
        raise RowError("its image must be a text")
    name = given or f"swebench/sweb.eval.x86_64.{instance.lower()}".replace("__", "_1776_")
    head, slash, last = name.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0].partition('@')[0]}"


def _spellings(name: str) -> Iterator[str]:
    yield name
    for theirs, others in (("_1776_", "_s_"), ("_s_", "_1776_")):
        if theirs in name:
            other = name.replace(theirs, others)
            yield other
            for owner in ("swebench/", "xingyaoww/"):
                yield owner + other.rpartition("/")[2]


def _fill(template: str, name: str, instance: str) -> str:
    values = {"image": name, "sif": name.strip("/").replace("/", "_") + ("" if name.endswith(".sif") else ".sif"),
              "instance": instance}
    try:
        return template.format(**values)
    except (KeyError, IndexError, ValueError):
        raise RowError(f"--image-template {template} may name {', '.join('{%s}' % field for field in FIELDS)}, and nothing else") from None


def find_image(row: Mapping[str, Any], instance: str, template: str) -> str:
    """The path of the row's image on the workers' nodes: of several spellings the first that is there, else the row's own."""
    name = image_name(row, instance)
    if not template:
        if name.startswith("/"):
            return name
        raise RowError(f"its image is {name}: say where prepared images are, such as --image-template '/images/{{sif}}'")
    paths = [_fill(template, spelling, instance) for spelling in _spellings(name)]
    return next((path for path in paths if os.path.exists(path)), paths[0])
