"""The errors as a page: every code that the source can give, found by reading the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import redkey
from redkey import errors
from redkey.services.problems import ADVICE, ADVICE_BY_STATUS
from tools.reference.markdown import table

_INTRO = """# Errors

Every refusal has a stable `code`; sentences may change. Over HTTP it is a problem (RFC 9457) with `status`, `code`,
`detail`, `advice` and, where something in the request is wrong, `errors` with JSON pointers. A lost race is no error:
a claim answers 200 with `status: missed` or `rejected`.
"""
_TREE = "## In Python\n\nThe errors of `redkey.errors`, which the command line prints and the SDK raises:\n"
_ROOT = Path(redkey.__file__).parent
# Refusals over HTTP are built by these; `wrong` is always 422.
_HTTP = {"Refused", "Declined"}
# Shown for what is filled in at run time.
_OPEN = "..."


class Code(NamedTuple):
    """One code in the source."""

    status: int
    code: str
    sentence: str


def page() -> str:
    """Write the problems of the API, the error tree, and the codes outside HTTP."""
    found: dict[tuple[int, str], str] = {}
    for one in sorted(_problems(), key=lambda one: (one.status, one.code)):
        if _OPEN not in one.code:
            found[one.status, one.code] = found.get((one.status, one.code)) or one.sentence
    rows = [
        (str(status), f"`{code}`", text, ADVICE.get(code) or ADVICE_BY_STATUS.get(status, ""))
        for (status, code), text in found.items()
    ]
    tree = (errors.__doc__ or "").partition("\n\n")[2].partition("\n\n")[0]
    parts = [_INTRO, "## Over HTTP\n", table(("status", "code", "said", "what to do"), rows)]
    parts += [_TREE, "```text", "\n".join(line.removeprefix("    ") for line in tree.splitlines()), "```\n"]
    parts += ["## Codes of these errors\n", table(("error", "codes"), _own_codes())]
    return "\n".join(parts)


def _calls(folder: Path) -> Iterator[tuple[ast.Call, list[ast.Assign]]]:
    """Yield every call in the source, with the assignments of its function."""
    for path in sorted(folder.rglob("*.py")):
        yield from _calls_in(ast.parse(path.read_text()), [])


def _calls_in(node: ast.AST, assigned: list[ast.Assign]) -> Iterator[tuple[ast.Call, list[ast.Assign]]]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        assigned = [part for part in ast.walk(node) if isinstance(part, ast.Assign)]
    if isinstance(node, ast.Call):
        yield node, assigned
    for child in ast.iter_child_nodes(node):
        yield from _calls_in(child, assigned)


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _problems() -> Iterator[Code]:
    for call, assigned in _calls(_ROOT):
        name, given = _name(call), call.args
        if name in _HTTP and len(given) >= 2 and isinstance(given[0], ast.Constant) and _text(given[1]):
            yield Code(given[0].value, _text(given[1]), _sentence(given[2], assigned) if len(given) > 2 else "")
        elif name == "wrong" and len(given) == 3 and _text(given[0]):
            sentence = _sentence(given[2], assigned)
            yield Code(422, _text(given[0]), f"{sentence[:1].upper()}{sentence[1:]}." if sentence else "")
        elif name == "not_found" and given and _text(given[0]):
            what = _text(given[0])
            yield Code(404, f"{what}_not_found", f"There is no such {what} in this workspace.")


def _own_codes() -> Iterator[tuple[str, str]]:
    """Yield the codes of each class of the tree: its own, and those given where it is raised."""
    kinds = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and hasattr(kind, "code")}
    codes: dict[str, set[str]] = {name: {kind.code} for name, kind in kinds.items() if name != "Finding"}
    for call, _ in _calls(_ROOT):
        given = [_text(word.value) for word in call.keywords if word.arg == "code"]
        if _name(call) in codes and given and given[0] and _OPEN not in given[0]:
            codes[_name(call)].add(given[0])
    for name, found in codes.items():
        yield f"`{name}`", ", ".join(f"`{code}`" for code in sorted(found))


def _sentence(node: ast.expr, assigned: list[ast.Assign]) -> str:
    """Return the text of an argument; a name means the text that was last assigned to it above this line."""
    if isinstance(node, ast.Name):
        values = [value for target, value in _pairs(assigned) if target == node.id and value.lineno <= node.lineno]
        return _text(max(values, key=lambda value: value.lineno)) if values else ""
    return _text(node)


def _pairs(assigned: list[ast.Assign]) -> Iterator[tuple[str, ast.expr]]:
    for part in assigned:
        target, value = part.targets[0], part.value
        both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
        for name, text in zip(target.elts, value.elts, strict=True) if both else [(target, value)]:
            if isinstance(name, ast.Name):
                yield name.id, text


def _text(node: ast.expr) -> str:
    """Return a text of the source; what is filled in at run time is shown as three dots."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else _OPEN for part in node.values)
    if isinstance(node, ast.IfExp):
        return _text(node.body) or _text(node.orelse)
    return ""
