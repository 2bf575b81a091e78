"""`python -m tools.style`: hold the source to the limits and the words that a reader relies on.

No function is longer than `FUNCTION_LINES`, from its `def` to its last line.

The packages in `SWEPT` are written in plain English and stay so: docstrings, comments and messages have no word of
`FORBIDDEN`, every public class and function has a docstring, and modules keep to `MODULE_LINES`. A package joins the
list when its last old sentence is gone.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "tools", "bench")
FUNCTION_LINES = 70
MODULE_LINES = 300
# Files and folders in plain English.
SWEPT = (
    "src/redkey/errors.py",
    "src/redkey/ledger",
    "src/redkey/plans",
    "src/redkey/readmodel",
)
# Modules that are longer for a reason.
LONG_MODULES = {
    "src/redkey/errors.py": "the error tree is one file, so that a reader finds every error there",
}
FORBIDDEN = re.compile(
    r"\b(somebody|anybody|everybody|whoever|whomever|mend|mends|mended|heard of|made by itself|made by themselves"
    r"|(is|are|was|were|be|been) told|stand|stands|stood|standing|lets? in|lets? go|dear|so many|so much)\b",
    re.IGNORECASE,
)

# From Python 3.12 on, the texts of an f-string are tokens of their own.
_TEXTS = (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING))

Findings = Iterator[tuple[int, str]]


def long_functions(tree: ast.Module) -> Findings:
    """Yield the line and a sentence for each function that is too long."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield node.lineno, f"{node.name} has {lines} lines, {FUNCTION_LINES} are allowed"


def missing_docstrings(tree: ast.Module) -> Findings:
    """Yield the module and each public class and function without a docstring; methods may do without."""
    if ast.get_docstring(tree) is None:
        yield 1, "the module has no docstring"
    for node in tree.body:
        named = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if named and not node.name.startswith("_") and ast.get_docstring(node) is None:
            yield node.lineno, f"{node.name} has no docstring"


def forbidden_words(text: str) -> Findings:
    """Yield the forbidden words in comments, docstrings and messages."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if _is_prose(token) and (found := FORBIDDEN.search(token.string)):
            line = token.start[0] + token.string[: found.start()].count("\n")
            yield line, f"{found.group()!r} is not plain English; see CONTRIBUTING.md"


def _is_prose(token: tokenize.TokenInfo) -> bool:
    """Whether a token is a comment or a text of sentences: not a name, and not a list of words."""
    if token.type not in _TEXTS:
        return token.type == tokenize.COMMENT
    return " " in token.string and ("\n" not in token.string or re.search("[.,;:]", token.string) is not None)


def judge(root: Path, swept: tuple[str, ...] = SWEPT) -> list[str]:
    """List everything that breaks a rule, as `file:line: what`."""
    wrong = []
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py")):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        findings = list(long_functions(tree))
        if any(name == part or name.startswith(f"{part}/") for part in swept):
            findings += [*missing_docstrings(tree), *forbidden_words(text)]
            lines = text.count("\n")
            if lines > MODULE_LINES and name not in LONG_MODULES:
                findings.append((lines, f"the module has {lines} lines, {MODULE_LINES} are allowed"))
        wrong += [f"{name}:{line}: {what}" for line, what in findings]
    return wrong


def main(arguments: list[str] | None = None) -> int:
    """Print what is wrong and return the exit code."""
    parser = argparse.ArgumentParser(description="Hold the source to the limits and words that a reader relies on.")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository to read [this one]")
    parser.add_argument("--swept", action="append", help="check this file or folder as swept; may be repeated")
    options = parser.parse_args(arguments)
    wrong = judge(options.root, tuple(options.swept or SWEPT))
    print("\n".join(wrong) or "style: every rule is kept")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
