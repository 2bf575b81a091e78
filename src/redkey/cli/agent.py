"""`redkey agent`: register agents, show what they do, deactivate and activate them."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from redkey.cli.declared import add_declared
from redkey.cli.look import Look
from redkey.cli.next_step import Step
from redkey.cli.provision import with_missing
from redkey.cli.screen import ago, print_created, print_done, print_list
from redkey.cli.session import agent_id_of, daily, ids_option, limit_option, recording, slugs_of
from redkey.cli.values import extensions_option, json_value

if TYPE_CHECKING:
    from redkey.client import RedKey
    from redkey.shapes.agents import Agent, RegisteredAgent


@click.group()
def command() -> None:
    """Register agents, show what they do, deactivate and activate them."""


@command.command()
@click.argument("name", required=False)
@click.option("--card", type=json_value, metavar="@FILE", help="Its Agent Card: @FILE, - or JSON.")
@click.option("--card-url", metavar="URL", help="Where the server fetches its Agent Card.")
@click.option("--role", "roles", multiple=True, metavar="ROLE", help="Grant it this role, created if missing; repeat.")
@click.option("--capability", "capabilities", multiple=True, metavar="NAME", help="A capability of NAME; repeat.")
@click.option("--key/--no-key", "issue_key", default=True, show_default=True, help="Create a key for it.")
@recording
def register(
    rk: RedKey,
    name: str | None,
    card: dict[str, Any] | None,
    card_url: str | None,
    roles: tuple[str, ...],
    capabilities: tuple[str, ...],
    issue_key: bool,
    extensions: dict[str, Any] | None,
    ids_only: bool,
    as_json: bool,
) -> None:
    """Register an agent, by its Agent Card or just by NAME, and grant it roles.

    Its key is shown here and never again. An agent of this NAME that exists already stays the same agent: it gets the
    roles, and no second key.

    \b
      redkey agent register atlas --role researcher
      redkey agent register --card @agent-card.json --role researcher --role writer
    """
    if sum(one is not None for one in (name, card, card_url)) != 1:
        raise click.UsageError("give a NAME, --card or --card-url, and only one of them")
    if capabilities and name is None:
        raise click.UsageError("--capability is for agents without a card of their own; a card has skills")
    known = next(iter(rk.agents.list(slug=name)), None) if name is not None else None
    if known is not None:
        _grant(rk, roles, known.agent_id)
        # The server never issues a second key without a request.
        told = f"{known.agent_id}  {known.slug} is registered already" + (f"  ({', '.join(roles)})" if roles else "")
        lost = f"if its key is lost: redkey key create --scope agent --agent {known.slug}"
        step = Step(f"redkey agent show {known.slug}", lost)
        found = rk.agents.get(known.agent_id)
        print_created(found, known.agent_id, told, ids_only=ids_only, as_json=as_json, next_step=step)
        return
    made = rk.agents.register(
        card=_card(name, capabilities) if name is not None else card,
        card_url=card_url,
        issue_key=issue_key,
        extensions=extensions,
    )
    _grant(rk, roles, made.agent_id)
    if as_json or ids_only:
        print_created(made, made.agent_id, "", ids_only=ids_only, as_json=as_json)
    else:
        _print_registered(made, roles)


def _grant(rk: RedKey, roles: tuple[str, ...], agent_id: str) -> None:
    for role in roles:
        with_missing(rk, partial(rk.roles.grant, role, agent_id), roles=(role,))


def _card(name: str, capabilities: tuple[str, ...]) -> dict[str, Any]:
    """A minimal A2A Agent Card."""
    skills = [{"id": one, "name": one, "description": one, "tags": [one]} for one in capabilities]
    return {
        "name": name,
        "description": name,
        "version": "1.0.0",
        "url": "https://agent.invalid/",
        "capabilities": {},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": skills,
    }


def _print_registered(made: RegisteredAgent, roles: tuple[str, ...]) -> None:
    click.echo(f"{made.agent_id}  {made.slug}" + (f"  ({', '.join(roles)})" if roles else ""))
    if made.api_key:
        click.echo("\nIts key, shown only now:\n")
        click.echo(f"  export REDKEY_AGENT_ID={made.agent_id}\n  export REDKEY_API_KEY={made.api_key}\n")


@command.command()
@click.argument("agent")
@limit_option
@ids_option
@daily
def history(rk: RedKey, agent: str, limit: int, ids_only: bool, as_json: bool) -> None:
    """List an agent's claims, the newest first: won, missed (with the winner), rejected (with the reason)."""
    from itertools import islice

    found = list(islice(rk.agents.claim_history(agent_id_of(rk, agent)), limit))
    slugs = {} if as_json or ids_only else slugs_of(rk)
    print_list(
        found,
        ("WHEN", "OUTCOME", "TASK", "EVENT", "WHY"),
        lambda one: (
            ago(one.at),
            one.status,
            one.task_id,
            one.event_id,
            f"won by {slugs.get(one.winning_agent_id, one.winning_agent_id)}" if one.winning_agent_id else one.reason,
        ),
        as_json=as_json,
        ids_only=ids_only,
        id_of=lambda one: one.event_id,
        empty="it has claimed nothing yet",
    )
    if not as_json and not ids_only and found:
        counts = Counter(one.status for one in found)
        click.echo(", ".join(f"{count} {status}" for status, count in counts.most_common()), err=True)


@command.command()
@click.argument("agent")
@extensions_option
@daily
def activate(rk: RedKey, agent: str, extensions: dict[str, Any] | None, as_json: bool) -> None:
    """Activate a deactivated agent, so that it can claim again."""
    done = rk.agents.update(agent_id_of(rk, agent), active=True, extensions=extensions)
    print_done(done, f"{agent} is active", as_json=as_json)


def _roles(agent: Agent) -> list[str]:
    return [role.removeprefix("role_") for role in agent.roles]


def _state(agent: Agent) -> str:
    if not agent.active or agent.lost:
        return "lost" if agent.active else "inactive"
    if agent.paused_until and agent.paused_until > datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"):
        return f"paused until {agent.paused_until[:16]}Z ({agent.pause.replace('_', ' ')})"
    return "active"


add_declared(
    command,
    "agent",
    {
        "list": Look(
            parts={
                "AGENT": "agent_id",
                "SLUG": "slug",
                "STATE": _state,
                "HOLDS": "live_claims",
                "LAST SEEN": "last_act_at",
                "ROLES": _roles,
            },
            empty="no agents yet: redkey agent register NAME --role ROLE",
        ),
        "show": Look(
            parts={
                "agent": "agent_id",
                "slug": "slug",
                "state": _state,
                "name": "name",
                "description": "description",
                "framework": "framework",
                "endpoint": "endpoint",
                "roles": _roles,
                "capabilities": "capabilities",
                "account": "account",
                "card": lambda agent: f"{agent.card_format}, {agent.verification.status}",
                "holds": "live_claims",
                "registered": "registered_at",
                "last seen": "last_act_at",
            }
        ),
        "deactivate": Look(told="{agent} is inactive", next_step="redkey agent activate {agent}"),
    },
)
