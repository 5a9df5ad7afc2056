"""Prints docs/python.md: the public names of the package, from their own docstrings and comments."""

import dataclasses
import inspect
import re

import sluice
from sluice import advantages, batch
from sluice.adapters import rollouts
from sluice.errors import CLASSES

INTRO = """\
# The Python client

`client/python/reference.py` makes this page from the package's docstrings; a test compares the two. [trainers.md](trainers.md) has recipes,
[trajectory.md](trajectory.md) the meaning of a trajectory's fields, and [sluice.h](../client/sluice.h) the same calls in C.

```
python3 -m venv ~/sluice && ~/sluice/bin/pip install ./client/python
```

The distribution is `sluice-rollouts`, and the package that it installs is `sluice`: `pip install sluice` would install a program
of others. It needs Python 3.9 or newer, `pyzmq`, `msgpack`, `numpy` and `lz4`; it has type hints throughout (`py.typed`).
Times are in seconds unless a name says otherwise.

Clients, what they yield, functions and errors are names of the package itself: `from sluice import Client`. These are modules that are
imported by their own names:

| module | what it is for |
|---|---|
"""
MODULES = (  # page, or title of a section below
    ("sluice.batch", "arrays of trajectories", "#arrays-of-trajectories"),
    ("sluice.advantages", "advantages, and weights of tokens", "#advantages-and-weights"),
    ("sluice.adapters.NAME", "one trainer's adapter each; `rollouts` is what they stand on", "trainers.md"),
    ("sluice.bridge", "a trainer's own generate as an engine", "trainers/bridge.md"),
    ("sluice.handlers", "evaluators, agents and tools as functions", "handlers.md"),
    ("sluice.export", "trajectories as files: parquet, JSON lines, pairs for SFT and DPO", "export.md"),
    ("sluice.importers", "tasks out of rows of data sets and of task folders", "tasks/importers.md"),
)
ERRORS = """
## Errors

`TimeoutError` of `policy_pause` and of sessions, and `OSError` of a file of tasks that cannot be read, are Python's own.
"""


def words(thing):
    said = inspect.getdoc(thing)
    assert said, f"{thing} says nothing of itself"
    return re.sub(r"\bdocs/((?:\w+/)*(\w+\.md))", r"[\2](\1)", said)


def blocks(thing):
    """Its words, where `name: ...` of each argument is an item of a list."""
    names = "|".join(inspect.signature(thing).parameters)
    item = rf"(?:(?<=\.\s)|^)((?:{names})(?:,\s(?:{names}))*):\s"
    paragraphs = []
    for text in words(thing).split("\n\n"):
        parts = re.split(item, text)
        told = [f"* `{'`, `'.join(re.split(',.', name, flags=re.DOTALL))}`: {' '.join(said.split())}"
                for name, said in zip(parts[1::2], parts[2::2])]
        swallowed = [one for one in told if re.search(r"\. (Returns|Raises) ", one)]
        assert not swallowed, f"{thing}: a paragraph of its own should say what no argument does: {swallowed[0]}"
        paragraphs += [part for part in (parts[0].strip(), "\n".join(told)) if part]
    return "\n\n".join(paragraphs)


def signature(name, thing):
    """Without types: for those there is py.typed."""
    given = [p.replace(annotation=p.empty) for p in inspect.signature(thing).parameters.values() if p.name != "self"]
    shown = str(inspect.Signature(given))
    return f"{name}{shown}"


def comments(kind):
    """Of each field, the comment behind it."""
    said = {}
    for line in inspect.getsource(kind).splitlines():
        found = re.match(r"    (\w+): [^#]*(?:#\s*(.*))?$", line)
        if found and not line.strip().startswith("def "):
            said[found.group(1)] = (found.group(2) or "").strip()
    return said


def type_name(field):
    return re.sub(r"npt\.NDArray\[np\.(\w+)\]", r"array of \1", field.type)


def put_method(name, thing):
    print(f"\n### `{signature(name, thing)}`\n\n{blocks(thing)}")


def put_client():
    print(f"\n## `{signature('Client', sluice.Client)}`\n\n{blocks(sluice.Client)}")
    for name, thing in vars(sluice.Client).items():
        if inspect.isfunction(thing) and not name.startswith("_"):
            put_method(name, thing)


def put_async_client():
    """Its calls are Client's: the same names, arguments and defaults, or this page would say too little."""
    calls = {name: thing for name, thing in vars(sluice.Client).items() if inspect.isfunction(thing) and name[0] != "_"}
    for name, thing in calls.items():
        assert signature(name, thing) == signature(name, getattr(sluice.AsyncClient, name)), name
    print(f"\n## `{signature('AsyncClient', sluice.AsyncClient)}`\n\n{blocks(sluice.AsyncClient)}")
    print("\n```python\nasync with AsyncClient() as client:\n    await client.submit(tasks, stream=\"train\", samples=8)\n"
          "    async for group in client.groups(\"train\", until_idle=True):\n        print(group)\n```")


def put_session():
    """As of the clients, those for asyncio are the same."""
    print(f"\n## `Session`\n\n{words(sluice.Session)}")
    for name, thing in vars(sluice.Session).items():
        if inspect.isfunction(thing) and name[0] != "_":
            assert signature(name, thing) == signature(name, getattr(sluice.AsyncSession, name)), name
            put_method(name, thing)
    print(f"\n## `AsyncSession`\n\n{words(sluice.AsyncSession)}")


def put_data(kind):
    print(f"\n### `{kind.__name__}`\n\n{words(kind)}\n\n| field | type | meaning |\n|---|---|---|")
    said = comments(kind)
    for field in dataclasses.fields(kind):
        print(f"| `{field.name}` | {type_name(field)} | {said[field.name]} |")
    for name, thing in vars(kind).items():
        if isinstance(thing, property):
            print(f"| `{name}` | {thing.fget.__annotations__['return']} | {words(thing)} |")
    for name, thing in vars(kind).items():
        if inspect.isfunction(thing) and not name.startswith("_"):
            print(f"\n`{signature(kind.__name__ + '.' + name, thing)}`\n\n{blocks(thing)}")


def put_errors(kinds):
    print(ERRORS + "\n| error | of | a refusal's `reason` | meaning |\n|---|---|---|---|")
    for kind in kinds:
        reasons = ", ".join(f"`{reason}`" for reason, of in CLASSES.items() if of is kind)
        base = "`, `".join(base.__name__ for base in kind.__bases__)
        said = " ".join(words(kind).replace("|", "\\|").split())
        print(f"| `{kind.__name__}` | `{base}` | {reasons or ('any other' if kind is sluice.Refused else '')} | {said} |")


def put_module(module, title):
    """Of a module that is imported by its own name, what its __all__ has."""
    print(f"\n## {title}\n\n`{module.__name__}`: {words(module)}")
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isfunction(thing):
            put_method(name, thing)
        elif dataclasses.is_dataclass(thing):
            put_data(thing)
        else:
            put_method(name, thing)
            for method, function in vars(thing).items():
                if inspect.isfunction(function) and not method.startswith("_"):
                    put_method(f"{name}.{method}", function)


def main():
    public = [getattr(sluice, name) for name in sluice.__all__]
    errors = [kind for kind in public if inspect.isclass(kind) and issubclass(kind, Exception)]
    data = [kind for kind in public if inspect.isclass(kind) and dataclasses.is_dataclass(kind)]
    functions = [thing for thing in public if inspect.isfunction(thing)]
    assert len(errors) + len(data) + len(functions) + 4 == len(public)
    print(INTRO, end="")
    for name, use, place in MODULES:
        print(f"| `{name}` | [{use}]({place}) |")
    put_client()
    put_async_client()
    put_session()
    print("\n## What `trajectories`, `groups` and `get` give")
    for kind in data:
        put_data(kind)
    print("\n## Functions")
    for thing in functions:
        put_method(thing.__name__, thing)
    put_module(batch, "Arrays of trajectories")
    put_module(advantages, "Advantages and weights")
    put_module(rollouts, "Rollouts that are awaited")
    put_errors(errors)


if __name__ == "__main__":
    main()
