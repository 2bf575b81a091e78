"""One file makes an operation: planted in a copy of the source, it is reached at every door."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.harness.server import Server, serving

ROOT = Path(__file__).resolve().parents[2]
PLANTED = '''"""Greetings: words for those who arrive."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from redkey.shapes.fields import Body, Reply
from redkey.shapes.operation import READ, Operation, answers


class NewGreeting(Body, frozen=True, kw_only=True):
    """How to greet."""

    words: Annotated[str, Meta(max_length=40, description="What to say.")] = "Hello"
    times: Annotated[int, Meta(ge=1, le=9, description="How often to say it.")] = 1


class Greeting(Reply, frozen=True, kw_only=True):
    """What was said, and with which key."""

    text: str
    key_id: str


GREET = Operation(
    *("greet", "POST", "/greetings/{name}", READ),
    body=NewGreeting,
    reply=Greeting,
    summary="Greet somebody.",
    method_name="greetings.say",
    command="greeting say NAME",
)


@answers(GREET)
def greet(caller: Any, name: str, asked: NewGreeting) -> Greeting:
    return Greeting(text=f"{' '.join([asked.words] * asked.times)}, {name}!", key_id=caller.actor.key_id)
'''
SYNC = """
from redkey.client import RedKey
from redkey.shapes.greetings import Greeting

with RedKey() as rk:
    reply = rk.greetings.say("Ada", words="Hi", times=2)
    assert isinstance(reply, Greeting)
    print(reply.text)
"""
ASYNC = """
import asyncio
from redkey.client import AsyncRedKey

async def main() -> None:
    async with AsyncRedKey() as rk:
        print((await rk.greetings.say("Ada", words="Hi", times=2)).text)

asyncio.run(main())
"""
TYPED = """
from redkey.client import AsyncRedKey, RedKey

reveal_type(RedKey().greetings.say)
async def main() -> None:
    reveal_type(await AsyncRedKey().greetings.say("Ada"))
RedKey().greetings.say("Ada", time=2)
"""


class Tree:
    """A copy of the source, with the planted file in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("src", "tools"):
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("contracts", "definitions", "examples", "fixtures", "schemas", "pyproject.toml"):
            (root / name).symlink_to(ROOT / name)
        (root / "src/redkey/shapes/greetings.py").write_text(PLANTED)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("REDKEY_")}
        self.environment = {**clean, "PYTHONPATH": f"{root / 'src'}:{root}"}

    def python(self, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        """The output of an interpreter that sees this tree."""
        command = [sys.executable, *arguments]
        given = {**self.environment, **(environment or {})}
        done = subprocess.run(command, cwd=self.root, env=given, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    made = Tree(tmp_path_factory.mktemp("tree"))
    made.python("-m", "tools.sdk")
    return made


@pytest.fixture(scope="module")
def server(tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("data"), environment=tree.environment) as started:
        yield started


@pytest.fixture(scope="module")
def where(server: Server) -> dict[str, str]:
    return {"REDKEY_URL": server.url, "REDKEY_API_KEY": server.key}


def test_the_planted_file_is_small() -> None:
    assert len(PLANTED.splitlines()) <= 40


def test_it_is_reached_by_http_and_bounded_by_its_shape(server: Server) -> None:
    with server.client() as client:
        reply = client.post("/greetings/Ada", {"words": "Hi", "times": 2})
        assert (reply.status, reply.json["text"]) == (200, "Hi Hi, Ada!")
        assert reply.json["keyId"].startswith("key_")
        assert client.post("/greetings/Ada", {"times": 10}).status == 422


def test_the_openapi_document_has_it(server: Server) -> None:
    with server.client() as client:
        document = client.get("/openapi.json").json
    operation = document["paths"]["/greetings/{name}"]["post"]
    assert (operation["operationId"], operation["summary"]) == ("greet", "Greet somebody.")
    assert document["components"]["schemas"]["NewGreeting"]["properties"]["times"]["maximum"] == 9


@pytest.mark.parametrize("code", [SYNC, ASYNC], ids=["sync", "async"])
def test_both_clients_have_its_method(tree: Tree, where: dict[str, str], code: str) -> None:
    assert tree.python("-c", code, environment=where) == "Hi Hi, Ada!\n"


def test_type_checkers_know_its_parameters_and_its_reply(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "typed.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--cache-dir", str(tmp_path / "cache")]
    environment = {**tree.environment, "MYPYPATH": str(tree.root / "src")}
    done = subprocess.run([*command, "typed.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    told = done.stdout.splitlines()
    assert "(name: str, *, words: str | None =, times: int | None =) -> redkey.shapes.greetings.Greeting" in (
        told[0].replace("builtins.", "")
    )
    assert 'Revealed type is "redkey.shapes.greetings.Greeting"' in told[1]
    assert 'Unexpected keyword argument "time"' in told[2]
    assert told[3].startswith("Found 1 error")


def test_the_command_line_has_its_command(tree: Tree, where: dict[str, str]) -> None:
    redkey = ("-m", "redkey")
    assert "greeting" in tree.python(*redkey, "--help")
    told = tree.python(*redkey, "greeting", "say", "--help")
    assert "How often to say it." in told
    said = tree.python(*redkey, "greeting", "say", "Ada", "--times", "3", environment=where)
    assert said.splitlines()[0].split(maxsplit=1) == ["text", "Hello Hello Hello, Ada!"]
    as_json = tree.python(*redkey, "greeting", "say", "Ada", "--words", "Hi", "--json", environment=where)
    assert json.loads(as_json)["text"] == "Hi, Ada!"


def test_the_generated_docs_tell_of_it(tree: Tree) -> None:
    tree.python("-m", "tools.reference")
    reference = tree.root / "docs/reference"
    assert "### `POST /greetings/{name}`\n\nGreet somebody.\n" in (reference / "http.md").read_text()
    assert "### `redkey greeting say [OPTIONS] NAME`\n\nGreet somebody.\n" in (reference / "commands.md").read_text()
