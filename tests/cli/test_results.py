"""What tasks hand back, on the command line: artifacts, results and messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from redkey.client import RedKey
from tests.cli.test_daily_commands import _call, _does
from tests.harness.server import Server, serving

SCRIPT = "# Piers Gorman\n" * 2_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("results")) as running:
        yield running


@pytest.fixture(scope="module")
def done(server: Server) -> str:
    """A task that ada has completed with two artifacts and an output."""
    with RedKey(server.url, server.key) as rk:
        agent = rk.agents.register(card={"name": "ada"}).agent_id
        rk.queues.create("work", id="work")
        task = rk.tasks.create("work", title="Write a script").task_id
        claim = rk.queues.claim_next("work", agent)
        assert claim is not None
        kept = rk.content.put(SCRIPT)
        media = "text/markdown"
        rk.claims.add_artifact(claim.claim_id, "script", sha256=kept.sha256, bytes=len(SCRIPT), media_type=media)
        rk.claims.add_artifact(claim.claim_id, "notes", content="short notes")
        rk.tasks.add_message(task, "Two\nlines")
        rk.claims.complete(
            claim.claim_id,
            output={"guest": "Piers"},
            summary="Written.",
            notes="The second version is the shorter one.",
            cost_usd=0.0125,
        )
    return task


def test_a_task_shows_its_notes_and_its_cost(server: Server, done: str) -> None:
    shown = {
        line.split("  ")[0]: line.partition("  ")[2].strip()
        for line in _does(server, "task", "show", done).splitlines()
    }
    assert shown["notes"] == "The second version is the shorter one."
    assert shown["cost"] == "$0.012500"
    open_task = _does(server, "task", "create", "--title", "Open").strip()
    assert not {"notes", "cost"} & {
        line.split("  ")[0] for line in _does(server, "task", "show", open_task).splitlines()
    }


def test_artifacts_are_listed_and_got_whole(server: Server, done: str, tmp_path: Path) -> None:
    assert sorted(_does(server, "artifact", "list", done, "-q").split()) == ["notes", "script"]
    assert _does(server, "artifact", "get", done, "script") == SCRIPT
    target = tmp_path / "script.md"
    _does(server, "artifact", "get", done[:20], "script", "-o", str(target))
    assert target.read_text() == SCRIPT
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        ((), "has several artifacts; name one: notes, script", 2),
        (("scrpt",), "no artifact scrpt; it has: notes, script", 1),
    ],
)
def test_an_artifact_that_is_not_meant_clearly_is_named(
    server: Server, done: str, arguments: tuple[str, ...], said: str, code: int
) -> None:
    result = _call(server, "artifact", "get", done, *arguments)
    assert result.exit_code == code
    assert said in result.output


def test_a_file_that_cannot_be_written_leaves_nothing(server: Server, done: str, tmp_path: Path) -> None:
    result = _call(server, "artifact", "get", done, "notes", "-o", str(tmp_path / "missing" / "notes"))
    assert result.exit_code == 2
    assert "cannot be written: No such file or directory" in result.output


def test_a_result_is_the_output_of_a_completed_task(server: Server, done: str) -> None:
    assert json.loads(_does(server, "task", "result", done)) == {"guest": "Piers"}
    assert json.loads(_does(server, "task", "result", done, "--json"))["summary"] == "Written."
    waiting = _does(server, "task", "create", "--title", "waits").strip()
    result = _call(server, "task", "result", waiting)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"{waiting} is available" in result.stderr


def test_messages_about_a_task_are_shown_on_one_line_each(server: Server, done: str) -> None:
    assert "Two lines" in _does(server, "task", "messages", done)
    (message,) = [json.loads(line) for line in _does(server, "task", "messages", done, "--json").splitlines()]
    assert message["parts"] == [{"kind": "text", "text": "Two\nlines"}]


def test_a_task_names_its_agent_and_how_earlier_attempts_ended(server: Server, done: str) -> None:
    assert "ada" in _does(server, "task", "show", done)
    with RedKey(server.url, server.key) as rk:
        task = rk.tasks.create("work", title="Fails once", retry={"maxAttempts": 2}).task_id
        agent = next(iter(rk.agents.list(slug="ada"))).agent_id
        claim = rk.queues.claim_next("work", agent)
        assert claim is not None
        rk.claims.fail(claim.claim_id, "the source was down")
    shown = _does(server, "task", "show", task)
    assert "attempt 1" in shown
    assert "the source was down" in shown


def test_a_list_names_who_completed_a_task(server: Server, done: str) -> None:
    assert "ada" in _does(server, "task", "list", "--state", "completed")
