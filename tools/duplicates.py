"""`python -m tools.duplicates`: find repeated source code, and fail if there is more of it than allowed.

A run is six consecutive lines of code. Two files are a pair when they share a run: the same lines, or lines of the same
shape with other names, texts and numbers. A file that repeats itself is a pair with itself. Blank lines, comments,
imports and lone brackets do not count, nor does a run that occurs in more than eight places. Generated files do not
count, but their generators do. Declarations look alike without being the same logic, so they are compared line by line
only: the shapes of operations, and runs with fewer than two lines of code. A line is no code if it is a field
(`name: type = default`), an entry of a table (`"key": value,`, `"text",`), a parameter (`name,`) or a member of a union
(`| Name`). A pair is a place to look at, not an error.

`make check` fails when there are more pairs than `LIMITS` allows, or more than `BAR` by the first rule, which left out
only runs of nothing but fields and entries without a call (docs/decisions/0390). Write the shared part once. Lower the
limits when there are fewer pairs; do not raise them.
"""

from __future__ import annotations

import argparse
import keyword
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
RUN_LINES = 6
COMMON_PLACES = 8
DECLARATIONS = ("redkey/shapes/", "redkey/services/ordered/operations.py")
# The largest allowed number of pairs, by kind.
LIMITS = {"same": 10, "shape": 75}
# The largest allowed number of pairs of both kinds by the first rule.
BAR = 150
# How many lines of a run must be code.
CODE_LINES = 2

# A text that the docstring of every generated module contains.
_GENERATED = "`make verify` proves it current"
# A field of a struct or a parameter with its type, or an entry of a table, without a call.
_FIELD = re.compile(r"""(\w+|"[^"]*"): [^=(]*( = [^(]*)?,?""")
# The same; also an entry with any value, a text alone, a parameter without a type, and a member of a union.
_DECLARATION = re.compile(rf"""{_FIELD.pattern}|("[^"]*"|\d+): .*|"[^"]*",?|(\*{{0,2}}\w+|\*|/),|\| [\w.\[\], ]+""")
_IMPORT = re.compile(r"(from \S+ )?import ")
# The words of a docstring are separate tokens, so two sentences rarely have the same shape.
_TOKEN = re.compile(r"""\"{3}|[rbfu]*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|[A-Za-z_]\w*|\d[\w.]*|\S""")


class Line(NamedTuple):
    """A line of code: its number in the file, and its text without indentation."""

    number: int
    text: str


class Pair(NamedTuple):
    """Two files that share runs of lines; the first line of the first run in each, and how many runs there are."""

    first: str
    first_line: int
    second: str
    second_line: int
    runs: int


def code_lines(text: str) -> list[Line]:
    """The lines that are compared."""
    lines, importing = [], False
    for number, line in enumerate(text.splitlines(), start=1):
        words = " ".join(line.split())
        if importing or _IMPORT.match(words):
            importing = ")" not in words and (importing or words.endswith("("))
        elif re.search(r"\w", words) and not words.startswith("#"):
            lines.append(Line(number, words))
    return lines


def shape(text: str) -> str:
    """A line with every name, text and number replaced by a letter; keywords and operators stay."""
    return " ".join(map(_kind, _TOKEN.finditer(text)))


def _kind(token: re.Match[str]) -> str:
    text = token.group()
    if token.group(1):
        return "t"
    if text[0].isdigit():
        return "0"
    return text if keyword.iskeyword(text) or not (text[0].isalpha() or text[0] == "_") else "n"


def find_pairs(
    files: dict[str, list[Line]],
    key: Callable[[str], str],
    declaration: re.Pattern[str] | None = None,
    code_lines: int = CODE_LINES,
) -> list[Pair]:
    """Every pair of files that share a run of lines with equal keys; in a run, at least `code_lines` lines are not
    declarations.
    """
    places: defaultdict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, lines in files.items():
        keys = [key(line.text) for line in lines]
        counts = [declaration is None or not declaration.fullmatch(line.text) for line in lines]
        for at in range(len(keys) - RUN_LINES + 1):
            if sum(counts[at : at + RUN_LINES]) >= code_lines:
                places[tuple(keys[at : at + RUN_LINES])].append((name, at))
    pairs: dict[tuple[str, str], Pair] = {}
    for positions in places.values():
        if len(positions) > COMMON_PLACES:
            continue
        for (first, at), (second, other) in combinations(positions, 2):
            if first == second and other - at < RUN_LINES:
                continue
            new = Pair(first, files[first][at].number, second, files[second][other].number, 1)
            before = pairs.get((first, second))
            pairs[first, second] = new if before is None else before._replace(runs=before.runs + 1)
    return sorted(pairs.values(), key=lambda pair: -pair.runs)


def judge(source: Path, limits: dict[str, int]) -> tuple[dict[str, list[Pair]], list[str]]:
    """The pairs of a tree by kind, and a sentence for each limit that they exceed."""
    texts = {
        path.relative_to(source).as_posix(): path.read_text(encoding="utf-8") for path in sorted(source.rglob("*.py"))
    }
    files = {name: code_lines(text) for name, text in texts.items() if _GENERATED not in text}
    same = find_pairs(files, str)
    known = {(pair.first, pair.second) for pair in same}
    written = {name: lines for name, lines in files.items() if not name.startswith(DECLARATIONS)}

    def alike(declaration: re.Pattern[str], code_lines: int) -> list[Pair]:
        found = find_pairs(written, shape, declaration, code_lines)
        return [pair for pair in found if (pair.first, pair.second) not in known]

    by_kind = {"same": same, "shape": alike(_DECLARATION, CODE_LINES)}
    wrong = [
        f"{len(pairs)} pairs of files are alike ({how}), {limits[how]} are allowed"
        for how, pairs in by_kind.items()
        if len(pairs) > limits[how]
    ]
    total = len(same) + len(alike(_FIELD, 1))
    if total > BAR:
        wrong.append(f"{total} pairs of files are alike by the first rule, {BAR} are allowed")
    return by_kind, wrong


def _print_pairs(pairs: Iterable[Pair]) -> None:
    for pair in pairs:
        print(f"  {pair.first}:{pair.first_line} ~ {pair.second}:{pair.second_line} ({pair.runs} runs)")


def main(arguments: list[str] | None = None) -> int:
    """Print the number of pairs and return the exit code."""
    parser = argparse.ArgumentParser(description="Find repeated source code.")
    parser.add_argument("--list", action="store_true", help="list every pair")
    parser.add_argument("--source", type=Path, default=SOURCE, help="the folder to read [src]")
    options = parser.parse_args(arguments)
    by_kind, wrong = judge(options.source, LIMITS)
    print(f"duplicates: {len(by_kind['same'])} pairs of files with the same lines, {len(by_kind['shape'])} by shape")
    for line in wrong:
        print(f"  {line}; python -m tools.duplicates --list shows them")
    if options.list:
        for pairs in by_kind.values():
            _print_pairs(pairs)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
