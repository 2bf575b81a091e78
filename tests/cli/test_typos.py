"""A typo has no effect: what is wrong is refused before a queue, a role or an agent was created for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_daily_commands import _call, _does
from tests.harness.server import Server, serving

CARD = '{"nme": "ada"}'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("typos")) as running:
        yield running


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("task create --queue jobs --role r --title x --brief missing.json", "missing.json cannot be read"),
        ("task create --queue jobs --role r --title x --input @missing.json", "missing.json cannot be read"),
        ("task create --queue jobs --role r --title x --input {bad", "not JSON"),
        ("task create --queue jobs --role r --title x --max-attempts 0", "/retry/maxAttempts"),
        ("task create --queue jobs --role r --title x --output Bad!", "/outputs/0"),
        ("task create --queue jobs --role r --title x --depends-on task_01M7GRMQF0CPSMCDS1C09R2W06", "task_not_found"),
        ("workflow start missing.json --queue jobs", "missing.json cannot be read"),
        ("workflow start {plan} --queue jobs", "plan_invalid"),
        ("workflow start def_01M7GRMQF0CPSMCDS1C09R2W06 --queue jobs", "definition_not_found"),
        (f"agent register --role r --card {CARD.replace(' ', '')}", "card_invalid"),
        ("agent register --role r --card @missing.json", "missing.json cannot be read"),
    ],
)
def test_nothing_is_created_for_a_request_that_is_wrong(
    server: Server, tmp_path: Path, arguments: str, said: str
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text('{"tasks": [{"id": "a"}, {"id": "a"}]}')
    result = _call(server, *arguments.format(plan=plan).split() if "{plan}" in arguments else arguments.split())
    assert result.exit_code in (1, 2)
    assert said in result.output
    assert _does(server, "queue", "list", "-q") == ""
    assert _does(server, "role", "list", "-q") == ""
    assert _does(server, "agent", "list", "-q") == ""


def test_registering_an_agent_again_is_the_same_agent(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert "REDKEY_API_KEY=" in _does(server, "agent", "register", "ada")
        again = _does(server, "agent", "register", "ada", "--role", "writer")
        assert "ada is registered already" in again
        assert "REDKEY_API_KEY" not in again
        assert len(_does(server, "agent", "list", "-q").split()) == 1
        assert "writer" in _does(server, "agent", "list")
