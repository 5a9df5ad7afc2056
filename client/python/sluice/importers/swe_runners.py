"""How tests are run and read, by repository, where rows do not say it: SWE-bench's and SWE-Gym's.

A repository that is not here is tested by `pytest -rA`.
"""

from __future__ import annotations

import posixpath
import re
from typing import Dict, List, NamedTuple

NO_TEST = (".json", ".png", ".csv", ".txt", ".md", ".jpg", ".jpeg", ".pkl", ".yml", ".yaml", ".toml")
ACTIVATE = "source /opt/miniconda3/bin/activate && conda activate testbed"


class Runner(NamedTuple):
    command: str = "pytest -rA --color=no"
    parser: str = "pytest"
    witness: bool = True  # a plugin of pytest can be loaded


PYTEST = Runner()
V2 = Runner(parser="pytest_v2")
OPTIONS = Runner(parser="pytest_options")

RUNNERS: Dict[str, Runner] = {
    "astropy/astropy": Runner("pytest -rA -vv -o console_output_style=classic --tb=no", "pytest_v2"),
    "django/django": Runner("./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1", "django", False),
    "matplotlib/matplotlib": Runner(parser="matplotlib"),
    "mwaskom/seaborn": Runner("pytest --no-header -rA", "seaborn"),
    "psf/requests": OPTIONS,
    "pydicom/pydicom": OPTIONS,
    "pylint-dev/pylint": OPTIONS,
    "pytest-dev/pytest": Runner(witness=False),  # its tests are of pytest's own plugins
    "scikit-learn/scikit-learn": V2,
    "sphinx-doc/sphinx": Runner("tox --current-env -epy39 -v --", "pytest_v2", False),
    "sympy/sympy": Runner("PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning' bin/test -C --verbose", "sympy", False),
}

# What SWE-bench 5 calls its parsers, where it is another name than ours.
PARSERS = {"astroid": "pytest", "flask": "pytest", "marshmallow": "pytest", "pvlib": "pytest", "pyvista": "pytest",
           "sqlfluff": "pytest", "xarray": "pytest", "pydicom": "pytest_options", "requests": "pytest_options",
           "pylint": "pytest_options", "astropy": "pytest_v2", "scikit": "pytest_v2", "sphinx": "pytest_v2",
           "gradle_custom": "gradle", "rspec_transformed_json": "rspec", "micropython_test": "micropython",
           "react_pdf": "jest_files", "carbon": "jest_files", "grommet": "jest_files"}


def parser_name(theirs: str) -> str:
    name = theirs[len("parse_log_"):] if theirs.startswith("parse_log_") else theirs
    return PARSERS.get(name, name)


def files_of(patch: str) -> List[str]:
    """The files that a patch is of, each once, as they are called after it."""
    found = re.findall(r"^diff --git a/.+? b/(.+)$", patch, re.MULTILINE) or re.findall(r"^\+\+\+ b/(.+)$", patch, re.MULTILINE)
    return list(dict.fromkeys(found))


def directives(repository: str, test_patch: str) -> List[str]:
    """What of a test patch a runner is given to run."""
    files = [name for name in files_of(test_patch) if not name.endswith(NO_TEST)]
    if repository != "django/django":
        return files
    plain = [name[len("tests/"):] if name.startswith("tests/") else name for name in files]
    return [posixpath.splitext(name)[0].replace("/", ".") for name in plain]
