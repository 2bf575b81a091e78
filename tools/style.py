"""`python -m tools.style`: hold the source to the limits that a reader relies on.

No function is longer than `FUNCTION_LINES`. A function is counted from its `def` to its last line, decorators aside.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "tools", "bench")
FUNCTION_LINES = 70


def long_functions(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and a sentence for each function that is too long."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield node.lineno, f"{node.name} has {lines} lines, {FUNCTION_LINES} are allowed"


def judge(root: Path) -> list[str]:
    """List everything that breaks a limit, as `file:line: what`."""
    wrong = []
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py")):
        name = path.relative_to(root).as_posix()
        wrong += [f"{name}:{line}: {what}" for line, what in long_functions(path.read_text(encoding="utf-8"))]
    return wrong


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Hold the source to the limits that a reader relies on.")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository to read [this one]")
    wrong = judge(parser.parse_args(arguments).root)
    print("\n".join(wrong) or "style: every limit is kept")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
