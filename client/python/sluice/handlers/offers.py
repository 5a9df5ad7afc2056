"""The decorators, and what they know of a function: its role, name and version, its parameters, a tool's JSON Schema."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from typing import Any, Callable, Dict, List, Optional, TypeVar, Union, overload

Function = TypeVar("Function", bound=Callable[..., Any])

ROLES = ("agent", "tool", "evaluator", "hook")
OFFERS_MAX = 64
# What a function of each role may name as a parameter.
GIVEN = {"evaluator": ("job", "task", "metadata", "config", "prompt", "answer", "messages"),
         "agent": ("job", "task", "metadata", "config", "prompt"), "tool": ("job",),
         "hook": ("job", "task", "metadata", "turn", "messages", "tools", "reply")}
_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array"}


@dataclasses.dataclass(frozen=True)
class Offer:
    """A function that is offered."""

    role: str
    name: str
    version: str
    doc: str
    function: Callable[..., Any]
    parameters: Optional[Dict[str, Any]]  # a tool's JSON Schema

    def told(self) -> Dict[str, Any]:
        """As handler.hello says it."""
        row = {"role": self.role, "name": self.name, "version": self.version, "doc": self.doc}
        return row if self.parameters is None else {**row, "parameters": self.parameters}


# Of the module that is loaded, by role and name.
registered: Dict[str, Offer] = {}


# ---- a tool's schema -----------------------------------------------------------------------------------


def _schema_of_union(arguments: List[Any], where: str) -> Dict[str, Any]:
    inner = [one for one in arguments if one is not type(None)]
    if len(inner) != 1:
        raise TypeError(f"{where}: of a Union, only Optional is understood")
    return _schema_of(inner[0], where)


def _schema_of(hint: Any, where: str) -> Dict[str, Any]:
    origin, arguments = typing.get_origin(hint), list(typing.get_args(hint))
    if hint in _JSON_TYPES:
        return {"type": _JSON_TYPES[hint]}
    if origin is typing.Literal and all(isinstance(word, str) for word in arguments):
        return {"type": "string", "enum": arguments}
    if origin is list:
        return {"type": "array", "items": _schema_of(arguments[0], where)}
    if origin is dict:
        return {"type": "object"}
    if origin is Union or type(hint).__name__ == "UnionType":
        return _schema_of_union(arguments, where)
    raise TypeError(f"{where}: a parameter's type must be str, int, float, bool, dict, list[...], Literal[\"...\"] or "
                    f"Optional of these, not {hint!r}")


def _lines_of(doc: str) -> Dict[str, str]:
    """What a docstring says of parameters: lines "name: what it is"."""
    return dict(re.findall(r"^\s*(\w+): (\S.*)$", doc, re.MULTILINE))


def _doc_without(doc: str, names: List[str]) -> str:
    lines = [line for line in doc.splitlines() if line.strip().partition(":")[0] not in names]
    return "\n".join(lines).strip()


def _tool_schema(function: Callable[..., Any], doc: str) -> Dict[str, Any]:
    hints, said = typing.get_type_hints(function), _lines_of(doc)
    properties, required = {}, []
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "job":
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"the tool {function.__name__} may not have *arguments: the model is told each by name")
        if name not in hints:
            raise TypeError(f"the tool {function.__name__}: the type of {name} is not said")
        properties[name] = _schema_of(hints[name], f"the tool {function.__name__}, {name}")
        if name in said:
            properties[name]["description"] = said[name]
        if parameter.default is parameter.empty:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


# ---- decorators ----------------------------------------------------------------------------------------


def _check_parameters(role: str, function: Callable[..., Any]) -> None:
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in GIVEN[role] and parameter.default is parameter.empty:
            raise TypeError(f"the {role} {function.__name__} asks for {name!r}; it can be given {', '.join(GIVEN[role])}")


def _register(role: str, function: Function, name: Optional[str], version: str, doc: Optional[str]) -> Function:
    name = function.__name__ if name is None else name
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_.-]{0,63}", name):
        raise ValueError(f"the {role} {name!r}: a name is 1 to 64 letters, digits, '_', '.' and '-', beginning with a letter")
    if not re.fullmatch("[A-Za-z0-9_.+-]{1,32}", version):
        raise ValueError(f"the {role} {name}: version {version!r} must be 1 to 32 letters, digits, '_', '.', '+' and '-'")
    key = f"{role}:{name}"
    if key in registered:
        raise ValueError(f"the {role} {name} exists already")
    if len(registered) == OFFERS_MAX:
        raise ValueError(f"a handler offers at most {OFFERS_MAX} things")
    text = inspect.cleandoc(doc if doc is not None else function.__doc__ or "")
    parameters = None
    if role == "tool":
        parameters = _tool_schema(function, text)
        text = _doc_without(text, list(parameters["properties"]))
    else:
        _check_parameters(role, function)
    registered[key] = Offer(role, name, version, text, function, parameters)
    return function


def _decorate(role: str, given: Any, version: str, doc: Optional[str]) -> Any:
    if callable(given):
        return _register(role, given, None, version, doc)

    def decorate(function: Function) -> Function:
        return _register(role, function, given, version, doc)
    return decorate


@overload
def evaluator(name: Function) -> Function: ...
@overload
def evaluator(name: Optional[str] = None, *, version: str = "0") -> Callable[[Function], Function]: ...


def evaluator(name: Any = None, *, version: str = "0") -> Any:
    """Offers a function as an evaluator: a task's eval.kind names it. name: its own if not given; version: recorded.

    The function may have parameters of these names: job, task, metadata, config (eval.config), prompt, answer, messages. It
    returns a number, None (no reward), (number, detail), a Score, or a dict: reward (or score), parts, metrics, tests, detail; any
    other name is a metric.
    """
    return _decorate("evaluator", name, version, None)


@overload
def agent(name: Function) -> Function: ...
@overload
def agent(name: Optional[str] = None, *, version: str = "0") -> Callable[[Function], Function]: ...


def agent(name: Any = None, *, version: str = "0") -> Any:
    """Offers a function as an agent: a task's agent.kind names it. name: its own if not given; version: recorded.

    The function may have parameters of these names: job, task, metadata, config (agent.config), prompt. It returns the answer,
    or None: the last turn's text.
    """
    return _decorate("agent", name, version, None)


@overload
def tool(name: Function) -> Function: ...
@overload
def tool(name: Optional[str] = None, *, version: str = "0", doc: Optional[str] = None) -> Callable[[Function], Function]: ...


def tool(name: Any = None, *, version: str = "0", doc: Optional[str] = None) -> Any:
    """Offers a function as a tool: a task's agent.tools names it. name: its own if not given; version: recorded.

    Its parameters, with their types, are what the model is told, and its docstring (or doc); a line "word: ..." of that
    describes the parameter `word`. A parameter named job is the ToolJob. It returns a string, anything that json can write, or an
    Answer, which ends the rollout.
    """
    return _decorate("tool", name, version, doc)


@overload
def hook(name: Function) -> Function: ...
@overload
def hook(name: Optional[str] = None, *, version: str = "0") -> Callable[[Function], Function]: ...


def hook(name: Any = None, *, version: str = "0") -> Any:
    """Offers a function as a hook, which every turn between a harness and its model passes (sluice-worker run --hook).

    It is called before a turn is sampled, with reply None, and before it is told, with what the harness is to be told. The function
    may have parameters of these names: job, task, metadata, turn (from 1 on), messages and tools (dicts; empty at a reply), reply
    (a dict of text, calls and, where the model thought, thinking; or None). It returns None (it passes), a Change, or a Refuse.
    """
    return _decorate("hook", name, version, None)
