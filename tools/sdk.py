"""The SDK's methods: `python -m tools.sdk` writes `src/redkey/client/calls` from the declared operations.

There is one module per family, with one method for each operation whose `method_name` begins with its name; `families`
has all of them on one sender. A method that a class of `redkey.client.resources` defines by hand is not generated.
The files are committed, so that type checkers and editors see them; `make verify` proves that they are current.
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
    """A class of `client.resources`: its module, and the methods that it defines itself."""

    module: str
    name: str
    methods: frozenset[str]


def generated() -> dict[str, bytes]:
    """Every module, by its path from the root of the repository."""
    written, families = _written(), _families()
    generated_calls = {
        family: [call for call in calls if family not in written or _method(call) not in written[family].methods]
        for family, calls in families.items()
    }
    sources = {family: _family(family, calls) for family, calls in generated_calls.items() if calls}
    sources["families"] = _table({*families, *written}, written)
    sources["__init__"] = f'"""The calls of the API, one module per family.\n\n{_NOTE}\n"""\n'
    return {f"{FOLDER}/{name}.py": _formatted(text) for name, text in sorted(sources.items())}


def _families() -> dict[str, list[Operation]]:
    """The operations by the family of their methods."""
    families: dict[str, list[Operation]] = {}
    for operation in operations():
        if operation.method_name:
            families.setdefault(operation.method_name.partition(".")[0], []).append(operation)
    return families


def _method(operation: Operation) -> str:
    return operation.method_name.partition(".")[2]


def _written() -> dict[str, Written]:
    """The families with a class in `client.resources`; the files are parsed, because importing needs this output."""
    written = {}
    for path in sorted((ROOT / RESOURCES).glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base).endswith("[Mode]") for base in node.bases):
                methods = frozenset(method.name for method in node.body if isinstance(method, ast.FunctionDef))
                written[node.name.lower()] = Written(path.stem, node.name, methods)
    return written


def _table(families: Iterable[str], written: dict[str, Written]) -> str:
    """The source of the module with all families."""
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
        'class Families(Generic[Mode]):\n    """Every family of calls, on one sender."""\n\n'
        "    def _open(self, sender: ClientSender) -> None:\n" + "\n".join(lines) + "\n"
    )


def _class_name(family: str) -> str:
    return "".join(word.capitalize() for word in family.split("_"))


def _family(family: str, calls: list[Operation]) -> str:
    """The source of the module of one family."""
    names = Names()
    names.take("redkey.client.operation", "Mode", "Resource")
    methods = [_call(operation, names) for operation in calls]
    purpose = _purpose(family)
    return (
        f'"""{purpose}\n\n{_NOTE}\n"""\n\nfrom __future__ import annotations\n\n{names.imports()}\n\n'
        f"class {_class_name(family)}(Resource[Mode]):\n{_docstring(purpose, 4)}\n\n" + "\n".join(methods)
    )


def _purpose(family: str) -> str:
    """The docstring of a family: the first line of the shapes with its name, or of those with its first operation."""
    first = _families()[family][0]
    by_name = {module.__name__.rpartition(".")[2]: module for module in modules()}
    module = by_name.get(family) or next(module for module in modules() if first in vars(module).values())
    return (module.__doc__ or "").partition("\n")[0]


class Names:
    """The imports of a module, collected while its methods are written."""

    def __init__(self) -> None:
        self._taken: dict[str, set[str]] = {}

    def take(self, module: str, *names: str) -> None:
        self._taken.setdefault(module, set()).update(names)

    def imports(self) -> str:
        """Import statements in the linter's order: standard library, other packages, redkey."""
        groups: list[list[str]] = [[], [], []]
        for module, names in sorted(self._taken.items()):
            place = 2 if module.startswith("redkey") else 1 if module == "msgspec" else 0
            ordered = sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name.lower()))
            groups[place].append(f"from {module} import {', '.join(ordered)}")
        return "\n\n".join("\n".join(group) for group in groups if group) + "\n"

    def of(self, kind: Any) -> str:
        """The source text of a reply type."""
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

    def accepted(self, kind: Any) -> str:
        """The source text of a parameter type: the types that callers may pass, which are more than the API's."""
        written = dict.fromkeys(text for part in plain_types(kind) for text in self._accepted(part))
        return " | ".join(written)

    def _accepted(self, kind: Any) -> Iterator[str]:
        if is_struct(kind):
            # Callers may pass an object as its shape or as a dict.
            yield from (self.of(kind), self._abstract("Mapping", str, Any))
        elif kind is Any:
            yield self.of(Any)
        elif alias := _alias(kind):
            self.take(*alias)
            yield alias[1]
        elif get_origin(kind) is Literal:
            self.take("typing", "Literal")
            yield f"Literal[{', '.join(_quoted(value) for value in get_args(kind))}]"
        elif get_origin(kind) in (list, tuple, set, frozenset):
            yield self._abstract("Sequence", get_args(kind)[0])
        elif get_origin(kind) is dict:
            # To a type checker, a dict[str, ...] is not a Mapping with other keys.
            yield self._abstract("Mapping", str, get_args(kind)[1])
        else:
            yield str(kind.__name__)

    def _abstract(self, name: str, *inside: Any) -> str:
        self.take("collections.abc", name)
        optional = [" | None" if type(None) in get_args(part) else "" for part in inside]
        return f"{name}[{', '.join(self.accepted(part) + none for part, none in zip(inside, optional, strict=True))}]"


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _alias(kind: Any) -> tuple[str, str] | None:
    """The module and name of an alias among the shapes, for a choice of words or of structs."""
    if get_origin(kind) is Literal or (len(plain_types(kind)) > 1 and all(map(is_struct, plain_types(kind)))):
        for module in modules():
            for name, value in vars(module).items():
                if value == kind and re.search(rf"^{name}\b.* = ", inspect.getsource(module), re.MULTILINE):
                    return module.__name__, name
    return None


def _call(operation: Operation, names: Names) -> str:
    """The source of the method of one operation."""
    all_parameters = parameters(operation)
    reply, accept = _reply(operation, names)
    kind = "Listing" if get_origin(operation.reply) is Page else "Operation"
    names.take("redkey.client.operation", kind)
    names.take("redkey.client.request", "Request")
    signature = ["self", *(_parameter(parameter, names) for parameter in all_parameters if parameter.by_position)]
    by_name = [_parameter(parameter, names) for parameter in all_parameters if not parameter.by_position]
    signature += ["*", *by_name] if by_name else []
    lines = [
        f"    @{kind}",
        f"    def {_method(operation)}({', '.join(signature)}) -> Request[{reply}]:",
        _docstring(operation.purpose, 8),
        f"        return {_request(operation, all_parameters, reply, accept, names)}",
    ]
    return "\n".join([*lines, ""])


def _reply(operation: Operation, names: Names) -> tuple[str, str]:
    """The return type of a method, and the media type that it requests if that is not JSON."""
    media = operation.media[0]
    if media == "application/json":
        return names.of(operation.reply if operation.reply is not None else dict[str, Any]), ""
    return ("str" if media.startswith(_TEXT) else "bytes"), media


def _parameter(parameter: Parameter, names: Names) -> str:
    name = parameter.name
    if parameter.required:
        return f"{name}: {names.accepted(parameter.kind)}"
    if name == "wait":
        return "wait: float = 0"
    if parameter.default is msgspec.UNSET:
        names.take("msgspec", "UNSET")
        return f"{name}: {names.accepted(parameter.kind)} = UNSET"
    written = names.accepted(tuple[str, ...] | str if parameter.is_several else parameter.kind)
    return f"{name}: {written} = None" if written == "Any" else f"{name}: {written} | None = None"


def _docstring(text: str, indent: int) -> str:
    lines = textwrap.wrap(f'"""{text}"""', _WIDTH - indent)
    if len(lines) > 1:
        # The closing quotes of a text of several lines are on a line of their own.
        lines = [*textwrap.wrap(f'"""{text}', _WIDTH - indent), '"""']
    return textwrap.indent("\n".join(lines), " " * indent)


def _request(operation: Operation, given: tuple[Parameter, ...], reply: str, accept: str, names: Names) -> str:
    """The expression that builds the request."""
    verb = operation.method.lower() if operation.sends_key else "beat"
    arguments = [_path(operation, given, names), reply]
    arguments += [f'accept="{accept}"'] if accept else []
    arguments += ["wait_seconds=wait"] if any(parameter.name == "wait" for parameter in given) else []
    named = [parameter for parameter in given if parameter.place != "path"]
    arguments += [f"{_keyword(parameter)}={_value(parameter, names)}" for parameter in named]
    names.take("redkey.client.request", verb)
    request = f"{verb}({', '.join(arguments)})"
    if operation.scopes:
        return request
    names.take("redkey.client.request", "without_key")
    return f"without_key({request})"


def _path(operation: Operation, given: tuple[Parameter, ...], names: Names) -> str:
    if not operation.path_names:
        return f'"{operation.path}"'
    by_wire = {parameter.wire: parameter.name for parameter in given if parameter.place == "path"}
    parts = [by_wire[part[1:-1]] if part.startswith("{") else f'"{part}"' for part in operation.path.split("/")[1:]]
    names.take("redkey.client.request", "at")
    return f"at({', '.join(parts)})"


def _keyword(parameter: Parameter) -> str:
    """The keyword argument that the request builder turns into the API's name."""
    snake = "".join(f"_{char.lower()}" if char.isupper() else char for char in parameter.wire)
    return f"{snake}_" if snake == "from" else snake


def _value(parameter: Parameter, names: Names) -> str:
    name = parameter.name
    if name == "wait":
        # 0 is the server's default, so it is left out.
        return "wait or None"
    inside = [part for kind in parameter.types for part in (kind, *get_args(kind))]
    if not any(is_struct(part) for kind in inside for part in plain_types(kind)):
        return name
    names.take("redkey.client.request", "as_object")
    if get_origin(parameter.types[0]) in (list, tuple):
        objects = f"[as_object(one) for one in {name}]"
        return objects if parameter.required else f"{objects} if {name} is not None else None"
    return f"as_object({name})"


def _formatted(text: str) -> bytes:
    command = [sys.executable, "-m", "ruff", "format", "--quiet", "--line-length", "120", "-"]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout


def main() -> None:
    """Write all modules and delete those that are no longer generated."""
    folder = ROOT / FOLDER
    folder.mkdir(exist_ok=True)
    files = generated()
    for stale in {path for path in folder.glob("*.py") if f"{FOLDER}/{path.name}" not in files}:
        stale.unlink()
    for name, data in files.items():
        (ROOT / name).write_bytes(data)


if __name__ == "__main__":
    main()
