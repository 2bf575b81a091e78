"""Every code block of README and docs runs, in the order of its page; what cannot is listed here with its reason."""

from __future__ import annotations

import ast
import json
import re
import shutil
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, RUNNABLE, Reader, blocks, key_of
from tools.node import why_not

PAGES = [
    *(ROOT / "README.md", ROOT / "sdk/python/README.md", ROOT / "sdk/typescript/README.md"),
    *sorted((ROOT / "docs").rglob("*.md")),
]
# Pages whose programs are run by Node.
BY_NODE = ("docs/how-to/typescript.md", "sdk/typescript/README.md")
# Pages without a reader: decisions and the generated reference, whose examples tests/api hold against the schemas.
SHOWN_ONLY = ("docs/decisions/", "docs/reference/")
# (page, first line of the block) -> why nothing runs it here.
NOT_RUN = {
    (
        "README.md",
        "make demo   # one minute: agents race, one is killed and its work moves on, a receipt is verified",
    ): ("make works in the checkout: tests/cli/test_demo_command.py runs the demo, and make test is what runs this"),
    (
        "docs/how-to/hedera.md",
        "redkey hedera party add $ORDERED 0.0.2002                          # at the first",
    ): "two organisations have two servers: tests/hedera/test_two_organisations.py does these steps",
}


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


READ = [page for page in PAGES if not _name(page).startswith(SHOWN_ONLY)]


@pytest.mark.parametrize("page", READ, ids=_name)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    if _name(page) in BY_NODE and (reason := why_not() or ("" if shutil.which("npm") else "needs npm on the PATH")):
        pytest.skip(f"{_name(page)} was not run: {reason}")
    reader = Reader(tmp_path)
    try:
        run = reader.follow(page, NOT_RUN)
    finally:
        reader.leave()
    listed = [block for block in blocks(page) if key_of(page, block) in NOT_RUN]
    runnable = [block for block in blocks(page) if block.language in RUNNABLE]
    assert run == len(runnable) - len(listed)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_block_says_what_it_is(page: Path) -> None:
    known = {*RUNNABLE, "text", "mermaid", "sql"}
    strange = [f"{_name(page)}:{block.line}" for block in blocks(page) if block.language not in known]
    assert strange == []


@pytest.mark.parametrize("page", [page for page in PAGES if page not in READ], ids=_name)
def test_pages_without_a_reader_show_what_can_at_least_be_read(page: Path) -> None:
    found = blocks(page)
    assert {block.language for block in found} <= {"json", "mermaid", "python", "text"}
    for block in found:
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "python":
            ast.parse(block.text)


LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"], ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = [found[1] for found in LINK.finditer(page.read_text()) if "://" not in found[1]]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        ahead += [
            (page.parent / found[1]).resolve() for found in LINK.finditer(page.read_text()) if "://" not in found[1]
        ]
    assert [_name(page) for page in READ if page not in seen] == []


def test_what_is_not_run_is_there_and_is_little() -> None:
    there = {key_of(page, block) for page in READ for block in blocks(page)}
    assert NOT_RUN.keys() <= there
    assert len(NOT_RUN) <= 3
