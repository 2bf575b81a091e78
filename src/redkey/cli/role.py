"""`redkey role`: who may claim what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from redkey.cli.screen import ago, print_details, print_done, print_list
from redkey.cli.session import agent_id_of, daily, ids_option

if TYPE_CHECKING:
    from redkey.client import RedKey


@click.group()
def command() -> None:
    """Make roles, and grant them to agents. Only a grant makes an agent eligible."""


@command.command()
@click.argument("name")
@click.option("--description", help="What its holders do.")
@click.option("--capability", "capabilities", multiple=True, metavar="NAME", help="What every holder can do; repeat.")
@daily
def create(rk: RedKey, name: str, description: str | None, capabilities: tuple[str, ...], as_json: bool) -> None:
    """Make the role NAME."""
    made = rk.roles.create(name, description=description, capabilities=capabilities or None)
    print_done(made, made.id, next_step=f"redkey role grant {made.id} AGENT", as_json=as_json)


@command.command("list")
@ids_option
@daily
def list_roles(rk: RedKey, ids_only: bool, as_json: bool) -> None:
    """All roles, and how many agents have them."""
    print_list(
        rk.roles.list(),
        ("ROLE", "AGENTS", "CAPABILITIES", "NAME"),
        lambda role: (role.id, str(len(role.agents)), ", ".join(role.capabilities), role.name),
        as_json=as_json,
        ids_only=ids_only,
        empty="no roles yet: redkey role create NAME",
    )


@command.command()
@click.argument("role")
@daily
def show(rk: RedKey, role: str, as_json: bool) -> None:
    """One role, and who has it."""
    found = rk.roles.get(role)
    print_details(
        found,
        [
            ("role", found.id),
            ("name", found.name),
            ("description", found.description),
            ("capabilities", found.capabilities),
            ("agents", found.agents),
            ("created", ago(found.created_at)),
        ],
        as_json=as_json,
    )


@command.command()
@click.argument("role")
@click.argument("agent")
@daily
def grant(rk: RedKey, role: str, agent: str, as_json: bool) -> None:
    """Let AGENT (id or slug) claim tasks that need ROLE."""
    done = rk.roles.grant(role, agent_id_of(rk, agent))
    print_done(done, f"{agent} has {done.role_id}", as_json=as_json)


@command.command()
@click.argument("role")
@click.argument("agent")
@daily
def revoke(rk: RedKey, role: str, agent: str, as_json: bool) -> None:
    """Take ROLE from AGENT (id or slug); what it holds it may finish."""
    done = rk.roles.revoke(role, agent_id_of(rk, agent))
    print_done(done, f"{agent} has {done.role_id} no more", as_json=as_json)
