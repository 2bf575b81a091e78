"""The SDK's methods: `python -m tools.sdk` writes `src/redkey/client/calls` from the declared operations.

One module a family, with one method for each operation whose `method_name` begins with it; `families` has all of them
over one sender. A method that a class of `redkey.client.resources` has under the same name is written by hand and left
out here. The files are committed, so that type checkers and editors see them; `make verify` proves them current.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin

import msgspec

from redkey.shapes.fields import Page
from redkey.shapes.operation import Operation
from redkey.shapes.operations import modules, operations
from redkey.shapes.signature import Parameter, is_struct, parameters, plain_types

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "src/redkey/client/calls"
RESOURCES = "src/redkey/client/resources"
_NOTE = "Written by `python -m tools.sdk` from the declared operations; `make verify` proves it current."
_WIDTH = 120
_TEXT = ("text/", "application/openmetrics")


class Written(NamedTuple):
    """A class of `client.resources`: where it is, and the methods that it has itself."""

    module: str
    name: str
    methods: frozenset[str]


def generated() -> dict[str, bytes]:
    """Every module by its path from the root of the repository."""
    written, families = _written(), _families()
    plain = {
        family: [one for one in calls if family not in written or _method(one) not in written[family].methods]
        for family, calls in families.items()
    }
    made = {family: _family(family, calls) for family, calls in plain.items() if calls}
    made["families"] = _table({*families, *written}, written)
    made["__init__"] = f'"""The calls of the API, a family a module.\n\n{_NOTE}\n"""\n'
    return {f"{FOLDER}/{name}.py": _formatted(text) for name, text in sorted(made.items())}


def _families() -> dict[str, list[Operation]]:
    """The operations by the family of their methods."""
    found: dict[str, list[Operation]] = {}
    for operation in operations():
        if operation.method_name:
            found.setdefault(operation.method_name.partition(".")[0], []).append(operation)
    return found


def _method(operation: Operation) -> str:
    return operation.method_name.partition(".")[2]


def _written() -> dict[str, Written]:
    """The families that have a class in `client.resources`, read without importing it: it imports what is made here."""
    found = {}
    for path in sorted((ROOT / RESOURCES).glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base).endswith("[Mode]") for base in node.bases):
                methods = frozenset(one.name for one in node.body if isinstance(one, ast.FunctionDef))
                found[node.name.lower()] = Written(path.stem, node.name, methods)
    return found


def _table(families: Iterable[str], written: dict[str, Written]) -> str:
    """The module that has every family."""
    names, lines = Names(), []
    names.take("typing", "Generic")
    names.take("redkey.client.operation", "ClientSender", "Mode")
    for family in sorted(families):
        name = written[family].name if family in written else _class_name(family)
        module = f"resources.{written[family].module}" if family in written else f"calls.{family}"
        names.take(f"redkey.client.{module}", name)
        lines.append(f"        self.{family}: {name}[Mode] = {name}(sender)")
    return (
        f'"""Every family of calls.\n\n{_NOTE}\n"""\n\nfrom __future__ import annotations\n\n{names.imports()}\n\n'
        'class Families(Generic[Mode]):\n    """Every family of calls, over one sender."""\n\n'
        "    def _open(self, sender: ClientSender) -> None:\n" + "\n".join(lines) + "\n"
    )


def _class_name(family: str) -> str:
    return "".join(word.capitalize() for word in family.split("_"))


def _family(family: str, calls: list[Operation]) -> str:
    """The module of one family."""
    names = Names()
    names.take("redkey.client.operation", "Mode", "Resource")
    methods = [_call(operation, names) for operation in calls]
    told = _purpose(family)
    return (
        f'"""{told}\n\n{_NOTE}\n"""\n\nfrom __future__ import annotations\n\n{names.imports()}\n\n'
        f"class {_class_name(family)}(Resource[Mode]):\n{_docstring(told, 4)}\n\n" + "\n".join(methods)
    )


def _purpose(family: str) -> str:
    """What the family is: the first line of the shapes that have its name, else of those with its first operation."""
    first = _families()[family][0]
    by_name = {module.__name__.rpartition(".")[2]: module for module in modules()}
    module = by_name.get(family) or next(one for one in modules() if first in vars(one).values())
    return (module.__doc__ or "").partition("\n")[0]


class Names:
    """What a module imports, collected while its methods are written."""

    def __init__(self) -> None:
        self._taken: dict[str, set[str]] = {}

    def take(self, module: str, *names: str) -> None:
        self._taken.setdefault(module, set()).update(names)

    def imports(self) -> str:
        """Import statements, in the order of the linter: the standard library, others, our own."""
        groups: list[list[str]] = [[], [], []]
        for module, names in sorted(self._taken.items()):
            place = 2 if module.startswith("redkey") else 1 if module == "msgspec" else 0
            ordered = sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name.lower()))
            groups[place].append(f"from {module} import {', '.join(ordered)}")
        return "\n\n".join("\n".join(group) for group in groups if group) + "\n"

    def of(self, kind: Any) -> str:
        """How a type of a reply is written."""
        if kind is Any:
            self.take("typing", "Any")
            return "Any"
        if alias := _alias(kind):
            self.take(*alias)
            return alias[1]
        if is_struct(kind):
            self.take(kind.__module__, kind.__name__)
            return str(kind.__name__)
        if get_origin(kind) is Page:
            self.take(Page.__module__, "Page")
            return f"Page[{self.of(get_args(kind)[0])}]"
        if isinstance(kind, type) and not get_args(kind):
            return kind.__name__
        if get_origin(kind) is dict:
            return f"dict[{', '.join(map(self.of, get_args(kind)))}]"
        return " | ".join(map(self.of, plain_types(kind)))

    def asked(self, kind: Any) -> str:
        """How the type of a parameter is written: what callers may give, which is more than what is made of it."""
        written = dict.fromkeys(one for part in plain_types(kind) for one in self._given(part))
        return " | ".join(written)

    def _given(self, kind: Any) -> Iterator[str]:
        if is_struct(kind):
            # An object may be given as its shape, or as a dict.
            yield from (self.of(kind), self._abstract("Mapping", str, Any))
        elif kind is Any:
            yield self.of(Any)
        elif alias := _alias(kind):
            self.take(*alias)
            yield alias[1]
        elif get_origin(kind) is Literal:
            self.take("typing", "Literal")
            yield f"Literal[{', '.join(_quoted(one) for one in get_args(kind))}]"
        elif get_origin(kind) in (list, tuple, set, frozenset):
            yield self._abstract("Sequence", get_args(kind)[0])
        elif get_origin(kind) is dict:
            # Type checkers take a dict of texts for no other keys.
            yield self._abstract("Mapping", str, get_args(kind)[1])
        else:
            yield str(kind.__name__)

    def _abstract(self, name: str, *inside: Any) -> str:
        self.take("collections.abc", name)
        optional = [" | None" if type(None) in get_args(one) else "" for one in inside]
        return f"{name}[{', '.join(self.asked(one) + none for one, none in zip(inside, optional, strict=True))}]"


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _alias(kind: Any) -> tuple[str, str] | None:
    """The module and the name that a choice of words or of structs has among the shapes."""
    if get_origin(kind) is Literal or (len(plain_types(kind)) > 1 and all(map(is_struct, plain_types(kind)))):
        for module in modules():
            for name, value in vars(module).items():
                if value == kind and re.search(rf"^{name}\b.* = ", inspect.getsource(module), re.MULTILINE):
                    return module.__name__, name
    return None


def _call(operation: Operation, names: Names) -> str:
    """The method of one operation."""
    asked = parameters(operation)
    reply, accept = _reply(operation, names)
    kind = "Listing" if get_origin(operation.reply) is Page else "Operation"
    names.take("redkey.client.operation", kind)
    names.take("redkey.client.request", "Request")
    signature = ["self", *(_parameter(one, names) for one in asked if one.by_position)]
    by_name = [_parameter(one, names) for one in asked if not one.by_position]
    signature += ["*", *by_name] if by_name else []
    lines = [
        f"    @{kind}",
        f"    def {_method(operation)}({', '.join(signature)}) -> Request[{reply}]:",
        _docstring(operation.purpose, 8),
        f"        return {_request(operation, asked, reply, accept, names)}",
    ]
    return "\n".join([*lines, ""])


def _reply(operation: Operation, names: Names) -> tuple[str, str]:
    """What a method gives, and the media type that it asks for where that is not JSON."""
    media = operation.media[0]
    if media == "application/json":
        return names.of(operation.reply if operation.reply is not None else dict[str, Any]), ""
    return ("str" if media.startswith(_TEXT) else "bytes"), media


def _parameter(one: Parameter, names: Names) -> str:
    if one.required:
        return f"{one.name}: {names.asked(one.kind)}"
    if one.name == "wait":
        return "wait: float = 0"
    if one.default is msgspec.UNSET:
        names.take("msgspec", "UNSET")
        return f"{one.name}: {names.asked(one.kind)} = UNSET"
    written = names.asked(tuple[str, ...] | str if one.is_several else one.kind)
    return f"{one.name}: {written} = None" if written == "Any" else f"{one.name}: {written} | None = None"


def _docstring(text: str, indent: int) -> str:
    lines = textwrap.wrap(f'"""{text}"""', _WIDTH - indent)
    if len(lines) > 1:
        # The quotes that end a text of several lines have a line of their own.
        lines = [*textwrap.wrap(f'"""{text}', _WIDTH - indent), '"""']
    return textwrap.indent("\n".join(lines), " " * indent)


def _request(operation: Operation, asked: tuple[Parameter, ...], reply: str, accept: str, names: Names) -> str:
    """The expression that builds the request."""
    verb = operation.method.lower() if operation.sends_key else "beat"
    arguments = [_path(operation, asked, names), reply]
    arguments += [f'accept="{accept}"'] if accept else []
    arguments += ["wait_seconds=wait"] if any(one.name == "wait" for one in asked) else []
    arguments += [f"{_keyword(one)}={_value(one, names)}" for one in asked if one.place != "path"]
    names.take("redkey.client.request", verb)
    request = f"{verb}({', '.join(arguments)})"
    if operation.scopes:
        return request
    names.take("redkey.client.request", "without_key")
    return f"without_key({request})"


def _path(operation: Operation, asked: tuple[Parameter, ...], names: Names) -> str:
    if not operation.path_names:
        return f'"{operation.path}"'
    by_wire = {one.wire: one.name for one in asked if one.place == "path"}
    parts = [by_wire[part[1:-1]] if part.startswith("{") else f'"{part}"' for part in operation.path.split("/")[1:]]
    names.take("redkey.client.request", "at")
    return f"at({', '.join(parts)})"


def _keyword(one: Parameter) -> str:
    """A name that the request builder spells as the API does."""
    snake = "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in one.wire)
    return f"{snake}_" if snake == "from" else snake


def _value(one: Parameter, names: Names) -> str:
    if one.name == "wait":
        # Not to wait is what the server does without being asked.
        return "wait or None"
    inside = [part for kind in one.types for part in (kind, *get_args(kind))]
    if not any(is_struct(part) for kind in inside for part in plain_types(kind)):
        return one.name
    names.take("redkey.client.request", "as_object")
    if get_origin(one.types[0]) in (list, tuple):
        objects = f"[as_object(one) for one in {one.name}]"
        return objects if one.required else f"{objects} if {one.name} is not None else None"
    return f"as_object({one.name})"


def _formatted(text: str) -> bytes:
    command = [sys.executable, "-m", "ruff", "format", "--quiet", "--line-length", "120", "-"]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout


def main() -> None:
    folder = ROOT / FOLDER
    folder.mkdir(exist_ok=True)
    made = generated()
    for stale in {path for path in folder.glob("*.py") if f"{FOLDER}/{path.name}" not in made}:
        stale.unlink()
    for name, data in made.items():
        (ROOT / name).write_bytes(data)


if __name__ == "__main__":
    main()
