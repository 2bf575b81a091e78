"""The error reference: every code that the source can return, found by parsing the source."""

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

Every refusal has a stable `code`; its text may change. Over HTTP it is a problem (RFC 9457) with `status`, `code`,
`detail`, `advice` and, if something in the request is invalid, `errors` with JSON pointers. A lost race is not an
error: a claim returns 200 with `status: missed` or `rejected`.
"""
_TREE = "## In Python\n\nThe errors of `redkey.errors`, which the command line prints and the SDK raises:\n"
_ROOT = Path(redkey.__file__).parent
# These build refusals over HTTP; `wrong` is always 422.
_HTTP = {"Refused", "Declined"}
# Shown in place of values that are filled in at run time.
_OPEN = "..."


class Code(NamedTuple):
    """One code in the source."""

    status: int
    code: str
    sentence: str


def page() -> str:
    """Write the problems of the API, the error tree, and the codes outside HTTP."""
    sentences: dict[tuple[int, str], str] = {}
    for problem in sorted(_problems(), key=lambda problem: (problem.status, problem.code)):
        if _OPEN not in problem.code:
            key = problem.status, problem.code
            sentences[key] = sentences.get(key) or problem.sentence
    rows = [
        (str(status), f"`{code}`", text, ADVICE.get(code) or ADVICE_BY_STATUS.get(status, ""))
        for (status, code), text in sentences.items()
    ]
    tree = (errors.__doc__ or "").partition("\n\n")[2].partition("\n\n")[0]
    parts = [_INTRO, "## Over HTTP\n", table(("status", "code", "text", "what to do"), rows)]
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
        name, arguments = _name(call), call.args
        if name in _HTTP and len(arguments) >= 2 and isinstance(arguments[0], ast.Constant) and _text(arguments[1]):
            sentence = _sentence(arguments[2], assigned) if len(arguments) > 2 else ""
            yield Code(arguments[0].value, _text(arguments[1]), sentence)
        elif name == "wrong" and len(arguments) == 3 and _text(arguments[0]):
            sentence = _sentence(arguments[2], assigned)
            yield Code(422, _text(arguments[0]), f"{sentence[:1].upper()}{sentence[1:]}." if sentence else "")
        elif name == "not_found" and arguments and _text(arguments[0]):
            what = _text(arguments[0])
            yield Code(404, f"{what}_not_found", f"There is no such {what} in this workspace.")


def _own_codes() -> Iterator[tuple[str, str]]:
    """Yield the codes of each class of the tree: its own, and those given where it is raised."""
    kinds = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and hasattr(kind, "code")}
    codes: dict[str, set[str]] = {name: {kind.code} for name, kind in kinds.items() if name != "Finding"}
    for call, _ in _calls(_ROOT):
        named = [_text(word.value) for word in call.keywords if word.arg == "code"]
        if _name(call) in codes and named and named[0] and _OPEN not in named[0]:
            codes[_name(call)].add(named[0])
    for name, own_codes in codes.items():
        yield f"`{name}`", ", ".join(f"`{code}`" for code in sorted(own_codes))


def _sentence(node: ast.expr, assigned: list[ast.Assign]) -> str:
    """Return the text of an argument; for a name, the text that was last assigned to it above this line."""
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
    """Return a text of the source, with `...` for values that are filled in at run time."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else _OPEN for part in node.values)
    if isinstance(node, ast.IfExp):
        return _text(node.body) or _text(node.orelse)
    return ""
