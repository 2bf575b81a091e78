"""`python -m tools.style`: check the source against the limits and the words that readers rely on.

No function is longer than `FUNCTION_LINES`, from its `def` to its last line.

The packages in `SWEPT` are written in plain English: their docstrings, comments and messages contain no word of
`FORBIDDEN`, every public class and function has a docstring, and modules have at most `MODULE_LINES` lines. Add a
package to the list when all its sentences are plain.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "tools", "bench")
FUNCTION_LINES = 70
MODULE_LINES = 300
# This module is not searched, because it lists the forbidden words.
OWN = "tools/style.py"
# Files and folders in plain English, or patterns of files.
SWEPT = (
    "bench",
    "src/redkey/api",
    "src/redkey/client",
    "src/redkey/commands",
    "src/redkey/a2a",
    "src/redkey/adapters",
    "src/redkey/errors.py",
    "src/redkey/bus",
    "src/redkey/cli/bus.py",
    "src/redkey/cli/bus_targets.py",
    "src/redkey/cli/chat.py",
    "src/redkey/http",
    "src/redkey/ledger",
    "src/redkey/mcp",
    "src/redkey/plans",
    "src/redkey/readmodel",
    "src/redkey/reducers",
    "src/redkey/shapes",
    "src/redkey/stores/*.py",
    "src/redkey/studio",
    "src/redkey/stores/memory",
    "src/redkey/stores/sqlite",
    "src/redkey/wire",
    "tools",
    "src/redkey/runner",
    "src/redkey/services",
    "src/redkey/app.py",
    "src/redkey/config.py",
    "src/redkey/fibers.py",
    "src/redkey/logs.py",
    "src/redkey/serving.py",
)
# Generated modules: their words come from the schemas.
GENERATED = ("src/redkey/wire/events.py",)
# Modules that are longer for a reason.
LONG_MODULES = {
    "bench/bus.py": "one measurement, with its load and its servers",
    "bench/compare.py": "one command, from its servers to its report",
    "src/redkey/api/adapter.py": "the path of a request through all checks to its reply, in one place",
    "src/redkey/app.py": "the composition root: every part of a server is created in one place",
    "src/redkey/client/clients.py": "the two clients, with the same methods in the same order",
    "src/redkey/commands/claims.py": "the commands of agents, and the decisions on claims",
    "src/redkey/commands/due.py": "one function for each wire that follows",
    "src/redkey/config.py": "every setting, and how it is read: the reference is generated from this file",
    "src/redkey/errors.py": "the error tree is one file, so that a reader finds every error there",
    "src/redkey/http/connection.py": "one connection is one state machine, from its first byte to its last",
    "src/redkey/mcp/results.py": "one model for each result of a tool",
    "src/redkey/mcp/work_tools.py": "the tools of a holder, as one class",
    "src/redkey/reducers/entities.py": "every entity of the world in one file: what is stored and loaded",
    "src/redkey/reducers/fold.py": "one case for each event type",
    "src/redkey/reducers/world.py": "the world is one class, which reducers change through its methods",
    "src/redkey/services/commit_path.py": "one class: from arrival to reply, over one set of worlds and waiters",
    "src/redkey/services/outbox.py": "one class: which deliveries run, and the path of one request to a receiver",
    "src/redkey/services/simulation.py": "the simulated crew and its report share one state",
    "src/redkey/services/subscriptions.py": "a feed and its followers share one state",
    "src/redkey/services/unit_of_work.py": "one class: the path of a request through decision, fold and append",
    "src/redkey/services/use_cases/holds.py": "one function for each act of a holder",
    "src/redkey/shapes/agents.py": "the requests, replies and operations of one family",
    "src/redkey/shapes/claims.py": "the requests, replies and operations of one family",
    "src/redkey/shapes/definitions.py": "the requests, replies and operations of one family",
    "src/redkey/shapes/tasks.py": "the requests, replies and operations of one family",
    "src/redkey/stores/memory/network.py": "a simulated network, its faults and the stores behind it",
    "src/redkey/stores/sqlite/inspection.py": "everything that fsck reads, as one class",
    "src/redkey/stores/sqlite/store.py": "the store is one class; units, commits and the lock have their own modules",
    "src/redkey/wire/a2a.py": "one projection, from a wire to the objects of a stream",
    "src/redkey/wire/grammar.py": "one compiler, from a schema to its expression",
    "tools/sdk.py": "one generator, from an operation to its method",
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
    """Whether a token is a comment or a text with sentences: not a name, and not a list of words."""
    if token.type not in _TEXTS:
        return token.type == tokenize.COMMENT
    return " " in token.string and ("\n" not in token.string or re.search("[.,;:]", token.string) is not None)


def judge(root: Path, swept: tuple[str, ...] = SWEPT) -> list[str]:
    """List every violation as `file:line: what`."""
    wrong = []
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py")):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        findings = list(long_functions(tree))
        if name not in GENERATED and any(_covers(part, name) for part in swept):
            findings += missing_docstrings(tree)
            if name != OWN:
                findings += forbidden_words(text)
            lines = text.count("\n")
            if lines > MODULE_LINES and name not in LONG_MODULES:
                findings.append((lines, f"the module has {lines} lines, {MODULE_LINES} are allowed"))
        wrong += [f"{name}:{line}: {what}" for line, what in findings]
    return wrong


def _covers(part: str, name: str) -> bool:
    """Return whether an entry of `SWEPT` covers a file: as the file itself, its folder, or a pattern for it."""
    return name.startswith(f"{part}/") or PurePosixPath(name).match(part)


def main(arguments: list[str] | None = None) -> int:
    """Print the violations and return the exit code."""
    parser = argparse.ArgumentParser(description="Check the source against the limits and words that readers rely on.")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository to read [this one]")
    parser.add_argument("--swept", action="append", help="check this file or folder as swept; may be repeated")
    options = parser.parse_args(arguments)
    wrong = judge(options.root, tuple(options.swept or SWEPT))
    print("\n".join(wrong) or "style: every rule is kept")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
