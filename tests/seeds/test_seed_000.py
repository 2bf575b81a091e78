"""Seed 000: its literal messages and cards are valid, and each field and value that it lists is held."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from redkey.cli import main
from redkey.errors import Finding, WorkplaceRefused
from redkey.ledger.receipt import read_receipt
from redkey.runner.prompt import assemble
from redkey.runner.skills import resolve
from redkey.runner.spec import Spec
from redkey.runner.workplace import Workplace
from redkey.wire import files
from redkey.wire.card import validate_card
from redkey.wire.legacy import validate_wire_1_0
from tests.api.conftest import Workspace
from tests.harness.acts import begin_queue, claim, create_task, register
from tests.harness.samples import QUINN, quinns_brief
from tests.runner.repository import git, make_repository
from tests.seeds.literal import example, fields, put, spellings, without

KINDS = ("brief", "inbox", "complete", "blocked", "claim")
MESSAGES = {kind: spellings(example(f"000-{kind}")) for kind in KINDS}
CARD = spellings(example("000-agent-card"))


def _errors(found: list[Finding]) -> set[str]:
    return {finding.pointer for finding in found if finding.severity == "error"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_is_valid_with_every_value_that_the_seed_lists(kind: str) -> None:
    assert [validate_wire_1_0(message) for message in MESSAGES[kind]] == [[]] * len(MESSAGES[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_has_exactly_the_fields_of_the_seed(kind: str) -> None:
    fixture = files.load(f"fixtures/agent-wire/v1.0/{kind}.valid.json")
    assert fields(fixture) == fields(MESSAGES[kind][0])
    # One field more is refused, wherever it is put.
    assert _errors(validate_wire_1_0({**MESSAGES[kind][0], "more": 1})) == {"/more"}
    assert _errors(validate_wire_1_0(put(MESSAGES[kind][0], ("payload", "more"), 1))) == {"/payload/more"}


@pytest.mark.parametrize("field", ["wire", "type", "sender", "ts", "payload"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_the_envelope_is_required(kind: str, field: str) -> None:
    assert example("000-envelope").keys() == {"wire", "type", "sender", "ts", "payload"}
    assert _errors(validate_wire_1_0(without(MESSAGES[kind][0], field))) == {f"/{field}"}


OPTIONAL = {
    "brief": {"context"},
    "inbox": {"ref_task_id"},
    "complete": {"output_ref"},
    "blocked": {"suggested_resolution"},
    "claim": set(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_a_payload_is_required_but_those_that_may_be_null(kind: str) -> None:
    first = MESSAGES[kind][0]
    missing = {name: _errors(validate_wire_1_0(without(first, "payload", name))) for name in first["payload"]}
    assert missing == {name: set() if name in OPTIONAL[kind] else {f"/payload/{name}"} for name in first["payload"]}


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        ("brief", ("payload", "output_contract", "type"), "poem"),
        ("brief", ("payload", "output_contract", "output_ref_required"), "yes"),
        ("brief", ("payload", "output_contract", "min_length"), -1),
        ("inbox", ("payload", "priority"), 0),
        ("inbox", ("payload", "priority"), 4),
        ("inbox", ("payload", "message_type"), "gossip"),
        ("inbox", ("payload", "action_required"), 1),
        ("complete", ("payload", "verification", "mechanical"), "skipped"),
        ("complete", ("payload", "verification", "semantic"), "maybe"),
        ("complete", ("payload", "verification", "attempts"), 0),
        ("complete", ("payload", "cost_usd"), -1),
        ("complete", ("payload", "duration_seconds"), -1),
        ("blocked", ("payload", "blocker_type"), "bad_mood"),
        ("claim", ("payload", "role"), ""),
        ("claim", ("ts",), "2026-04-28"),
        ("claim", ("ts",), "2026-02-30T00:00:00Z"),
    ],
)
def test_a_value_that_the_seed_does_not_list_is_refused(kind: str, place: tuple[str, ...], value: Any) -> None:
    assert _errors(validate_wire_1_0(put(MESSAGES[kind][0], place, value))) == {"/" + "/".join(place)}


@pytest.mark.parametrize("priority", [1, 2, 3])
def test_an_inbox_message_has_one_of_three_priorities(priority: int) -> None:
    assert validate_wire_1_0(put(MESSAGES["inbox"][0], ("payload", "priority"), priority)) == []


def test_the_card_of_the_seed_is_valid_with_every_value_that_it_lists() -> None:
    assert [validate_card(card) for card in CARD] == [[]] * len(CARD)
    assert fields(files.load("fixtures/cards/card.valid.json")) == fields(CARD[0])


@pytest.mark.parametrize("field", sorted(example("000-agent-card")))
def test_every_field_of_a_card_is_required(field: str) -> None:
    assert _errors(validate_card(without(CARD[0], field))) == {f"/{field}"}


@pytest.mark.parametrize("field", sorted(example("000-agent-card")["identity"]))
def test_every_field_of_an_identity_is_required(field: str) -> None:
    assert _errors(validate_card(without(CARD[0], "identity", field))) == {f"/identity/{field}"}


def test_the_reference_card_is_the_one_of_the_seed() -> None:
    assert files.load("definitions/cards/quinn.json") == example("000-quinn")
    assert validate_card(example("000-quinn")) == []


@pytest.mark.parametrize(
    ("kind", "field", "value", "code"),
    [
        ("brief", "goal", "It works. It is fast.", "goal_sentences"),
        ("brief", "goal", "Build the page.", "goal_imperative"),
        ("brief", "context", "word " * 201, "context_words"),
        ("brief", "acceptance_criteria", ["It passes. It must, because we ship it."], "criterion_sentences"),
        ("complete", "summary", "word " * 151, "summary_words"),
    ],
)
def test_the_command_line_judges_the_rules_of_prose(
    kind: str, field: str, value: Any, code: str, tmp_path: Path
) -> None:
    path = tmp_path / "wire.json"
    path.write_text(json.dumps(put(MESSAGES[kind][0], ("payload", field), value)))
    result = CliRunner().invoke(main, ["wire", "validate", "--json", str(path)])
    assert [finding["code"] for finding in json.loads(result.stdout)["findings"]] == [code]
    warning = code in ("goal_imperative", "criterion_sentences")
    assert result.exit_code == (0 if warning else 1)


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [("goal", "It works. It is fast.", "goal_sentences"), ("context", "word " * 201, "context_words")],
)
def test_the_server_judges_the_rules_of_prose(workspace: Workspace, field: str, value: str, code: str) -> None:
    begin_queue(workspace.admin)
    brief = put(MESSAGES["brief"][0], ("payload", field), value)
    reply = workspace.admin.post("/queues/q/tasks", {"title": "T", "brief": brief})
    assert reply.status == 422
    assert [error["code"] for error in reply.json["errors"]] == [code]


def test_a_brief_is_content_and_the_ledger_has_its_pointer(workspace: Workspace) -> None:
    begin_queue(workspace.admin)
    brief = MESSAGES["brief"][0]
    task_id = create_task(workspace.admin, brief=brief)
    shown = workspace.admin.get(f"/tasks/{task_id}").json["brief"]
    assert shown["payload"]["goal"] == brief["payload"]["goal"]
    created = workspace.admin.get(f"/tasks/{task_id}/events").json["items"][0]
    wire = _wire(workspace, created["eventId"])
    assert wire["type"] == "task.created"
    assert wire["payload"]["content_ref"].keys() == {"sha256", "bytes"}
    assert brief["payload"]["goal"] not in json.dumps(wire)


def _wire(workspace: Workspace, event_id: str) -> dict[str, Any]:
    """Return the wire of an event, from its offline receipt."""
    data = workspace.admin.get(f"/events/{event_id}/receipt?format=proof").content
    offline = read_receipt(data)[1].offline
    assert offline is not None
    wire: dict[str, Any] = json.loads(offline.wire)
    return wire


@pytest.mark.parametrize("act", ["complete", "block"])
def test_completions_and_blocks_of_a_runner_are_sent_by_the_runner(workspace: Workspace, act: str) -> None:
    begin_queue(workspace.admin)
    agent_id = register(workspace.admin)["agentId"]
    runner = workspace.caller("runner")
    claim_id = claim(runner, create_task(workspace.admin), agent_id)["claimId"]
    body = {"block": {"blockerType": "spec_gap", "reason": "Which audience?"}, "complete": {"summary": "Done."}}
    reply = runner.post(f"/claims/{claim_id}/{act}", body[act])
    assert reply.status == 200, reply.text
    assert _wire(workspace, reply.json["eventId"])["sender"].startswith("runner:")


def test_constraints_of_task_and_agent_are_shown_apart() -> None:
    text = assemble(QUINN, quinns_brief()).text
    agent, _, task = text.partition("## Brief")
    assert all(constraint in agent and constraint not in task for constraint in QUINN.constraints)
    assert "### Constraints\n\n- No new dependency" in task
    assert "No new dependency" not in agent


def test_the_shared_skills_are_in_every_prompt() -> None:
    skills = resolve(Spec(queue="q", exec="true", persona="p", name="quinn").shared_skills)
    for identity in (QUINN, "You are Quinn."):
        lines = assemble(identity, quinns_brief(), skills=skills).text.splitlines()
        assert {"### platform-env", "### inbox-protocol"} <= set(lines)


def test_a_worktree_path_is_where_the_agent_works(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin")
    (origin / "services").mkdir()
    (origin / "services" / "a.txt").write_text("a")
    git(origin, "add", ".")
    git(origin, "commit", "-q", "-m", "A folder")
    workplace = Workplace(tmp_path / "work", repositories=[str(tmp_path)])

    async def names(within: str) -> list[str]:
        async with workplace.place(within.lower().strip("./"), str(origin), within=within) as place:
            return [path.name for path in place.directory.iterdir()]

    assert asyncio.run(names("services")) == ["a.txt"]
    for elsewhere in ("../origin", "nowhere", "README.md"):
        with pytest.raises(WorkplaceRefused, match="worktree_path"):
            asyncio.run(names(elsewhere))
